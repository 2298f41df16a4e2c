//! Settings of a bridge.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use homeport_systems::messages::TopicFilter;

use crate::mqtt::codec::Version;

const PORT: u16 = 1883;
const PORT_TLS: u16 = 8883;

/// The address of a broker: `mqtt://host:port` or, with TLS, `mqtts://host:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BridgeAddress {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) has_tls: bool,
}

/// Files for TLS, all PEM.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BridgeTls {
    /// Issuers of the broker's certificate; unless given, the root certificates of this machine.
    pub ca: Option<PathBuf>,
    /// The client certificate and its key, if the broker requires one.
    pub client: Option<(PathBuf, PathBuf)>,
}

/// The settings of a bridge.
#[derive(Clone)]
pub struct BridgeSettings {
    pub address: BridgeAddress,
    pub tls: BridgeTls,
    pub version: Version,
    /// Keep it stable: the broker queues messages for this id.
    pub client_id: String,
    pub user: Option<String>,
    pub password: Option<String>,
    pub filters: Vec<TopicFilter>,
    /// Messages that are processed at a time.
    pub inflight_max: u16,
    pub keep_alive_secs: u16,
    /// How long an MQTT 5 broker keeps the session without a connection.
    pub session_expiry_secs: u32,
    /// How long connecting and subscribing may take.
    pub connect_timeout: Duration,
}

impl BridgeAddress {
    /// Whether the connection is encrypted.
    #[must_use]
    pub fn has_tls(&self) -> bool {
        self.has_tls
    }
}

impl FromStr for BridgeAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The text is not repeated, because it may contain a password.
        let wrong = || {
            "expected mqtt://host:port or mqtts://host:port, without user name and password"
                .to_owned()
        };
        let (has_tls, rest) = match (text.strip_prefix("mqtt://"), text.strip_prefix("mqtts://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => return Err(wrong()),
        };
        let is_bracketed = rest.starts_with('[');
        let (host, port) = match rest.rsplit_once(':') {
            // The last colon may be part of an address in brackets.
            Some((host, port)) if !is_bracketed || host.ends_with(']') => {
                let port = port.parse().ok().filter(|port| *port > 0);
                (host, port.ok_or_else(wrong)?)
            }
            _ => (rest, if has_tls { PORT_TLS } else { PORT }),
        };
        let host = match host.strip_prefix('[') {
            Some(inner) => inner.strip_suffix(']').ok_or_else(wrong)?,
            None if host.contains(':') => return Err(wrong()),
            None => host,
        };
        let is_plain = |letter: char| !letter.is_whitespace() && !"/@[]?#".contains(letter);
        if host.is_empty() || !host.chars().all(is_plain) {
            return Err(wrong());
        }
        Ok(Self {
            host: host.to_owned(),
            port,
            has_tls,
        })
    }
}

impl fmt::Display for BridgeAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.has_tls { "mqtts" } else { "mqtt" };
        let (open, close) = if self.host.contains(':') {
            ("[", "]")
        } else {
            ("", "")
        };
        let Self { host, port, .. } = self;
        write!(formatter, "{scheme}://{open}{host}{close}:{port}")
    }
}

impl fmt::Debug for BridgeSettings {
    /// Omits the password.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("BridgeSettings")
            .field("address", &self.address)
            .field("client_id", &self.client_id)
            .field("filters", &self.filters)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_scheme_host_and_port() {
        for (text, shown) in [
            ("mqtt://localhost", "mqtt://localhost:1883"),
            ("mqtts://a.example", "mqtts://a.example:8883"),
            ("mqtts://a.example:443", "mqtts://a.example:443"),
            ("mqtt://[::1]:1884", "mqtt://[::1]:1884"),
            ("mqtt://[::1]", "mqtt://[::1]:1883"),
        ] {
            let address: BridgeAddress = text.parse().expect(text);
            assert_eq!(address.to_string(), shown);
            assert_eq!(address.has_tls(), text.starts_with("mqtts"));
        }
        for wrong in [
            "",
            "localhost:1883",
            "http://localhost",
            "mqtt://",
            "mqtt://a:b",
            "mqtt://a:0",
            "mqtt://a:70000",
            "mqtt://user@a",
            "mqtt://a/b",
            "mqtt://::1",
            "mqtt://[::1",
        ] {
            assert!(wrong.parse::<BridgeAddress>().is_err(), "{wrong}");
        }
    }
}
