//! Addresses of clients: address ranges, the network that counts as one client in limits, and the client behind a reverse
//! proxy.

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use hyper::header::{FORWARDED, HeaderMap, HeaderName};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// All addresses that share a prefix, written `10.0.0.0/8`. A single address is a range of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    network: IpAddr,
    prefix_bits: u32,
}

/// Address ranges, separated by commas.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AddressRanges(Vec<AddressRange>);

/// The text is not an address range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an IP address or an address range like 10.0.0.0/8")]
pub struct InvalidRange(String);

/// The header with the client behind a reverse proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForwardedHeader {
    #[default]
    XForwardedFor,
    /// The header of RFC 7239.
    Forwarded,
}

/// The reverse proxies whose headers are trusted. By default none are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrustedProxies {
    pub addresses: AddressRanges,
    /// The only header that is read. A proxy forwards the other one unchanged, so a client could forge it.
    pub header: ForwardedHeader,
}

impl AddressRange {
    fn contains(self, address: IpAddr) -> bool {
        match (self.network, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let differing = network.to_bits() ^ address.to_bits();
                differing.leading_zeros() >= self.prefix_bits
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let differing = network.to_bits() ^ address.to_bits();
                differing.leading_zeros() >= self.prefix_bits
            }
            _ => false,
        }
    }
}

impl FromStr for AddressRange {
    type Err = InvalidRange;

    fn from_str(text: &str) -> Result<Self, InvalidRange> {
        let parse = || {
            let (address, prefix) = match text.split_once('/') {
                Some((address, prefix)) => (address, Some(prefix)),
                None => (text, None),
            };
            let network: IpAddr = address.trim().parse().ok()?;
            let bits_max = if network.is_ipv4() { 32 } else { 128 };
            let prefix_bits = match prefix {
                Some(prefix) => prefix.trim().parse().ok()?,
                None => bits_max,
            };
            (prefix_bits <= bits_max).then_some(Self {
                network,
                prefix_bits,
            })
        };
        parse().ok_or_else(|| InvalidRange(text.to_owned()))
    }
}

impl AddressRanges {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|range| range.contains(address))
    }
}

impl FromStr for AddressRanges {
    type Err = InvalidRange;

    fn from_str(text: &str) -> Result<Self, InvalidRange> {
        let entries = text.split(',').map(str::trim);
        let ranges = entries.filter(|entry| !entry.is_empty()).map(str::parse);
        ranges.collect::<Result<_, _>>().map(Self)
    }
}

impl TrustedProxies {
    /// The address of the client: the address of the peer, or the one that the first trusted proxy saw. The header is read from
    /// its end, because a client can forge everything before the entries of the proxies.
    #[must_use]
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        if !self.addresses.contains(client) {
            return client;
        }
        let name = match self.header {
            ForwardedHeader::XForwardedFor => X_FORWARDED_FOR,
            ForwardedHeader::Forwarded => FORWARDED,
        };
        let lines = headers.get_all(name).iter().rev();
        // Split as bytes: an invalid byte from the client must not hide the entries that proxies added after it.
        let hops = lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
        for hop in hops {
            let hop = std::str::from_utf8(hop).ok();
            let address = hop.and_then(|hop| match self.header {
                ForwardedHeader::XForwardedFor => address_of(hop),
                ForwardedHeader::Forwarded => forwarded_for(hop).and_then(address_of),
            });
            // A proxy that does not name the client counts as the client.
            let Some(address) = address else {
                return client;
            };
            client = address;
            if !self.addresses.contains(client) {
                return client;
            }
        }
        client
    }
}

/// The parameter `for` of one element of the header `Forwarded`.
fn forwarded_for(element: &str) -> Option<&str> {
    element.split(';').find_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        name.eq_ignore_ascii_case("for")
            .then_some(value.trim().trim_matches('"'))
    })
}

/// An address with or without a port. An IPv6 address may be in brackets.
fn address_of(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let without_port = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None => match text.split_once(':') {
            Some((address, port)) if !port.contains(':') => address,
            _ => text,
        },
    };
    let address: IpAddr = without_port.parse().ok()?;
    Some(address.to_canonical())
}

/// The network that counts as one client in limits: the address itself, or the /64 of an IPv6 address, since one
/// customer has at least a /64.
#[must_use]
pub fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn ranges_hold_the_addresses_of_their_prefix() {
        let ranges: AddressRanges = "10.0.0.0/8, 192.0.2.7,2001:db8::/32"
            .parse()
            .expect("ranges");
        for (text, expected) in [
            ("10.255.0.1", true),
            ("11.0.0.1", false),
            ("192.0.2.7", true),
            ("192.0.2.8", false),
            ("::ffff:10.1.1.1", true),
            ("2001:db8:ffff::1", true),
            ("2001:db9::1", false),
        ] {
            assert_eq!(ranges.contains(address(text)), expected, "{text}");
        }
        let all: AddressRanges = "0.0.0.0/0".parse().expect("a range");
        assert!(all.contains(address("203.0.113.1")));
        assert!(!all.contains(address("::1")));
        assert_eq!("".parse(), Ok(AddressRanges::default()));
        for invalid in ["10.0.0.0/33", "example.com", "10.0.0.0/", "10.0.0/8", "/8"] {
            assert!(invalid.parse::<AddressRanges>().is_err(), "{invalid}");
        }
    }

    #[test]
    fn forwarded_headers_count_only_from_trusted_proxies() {
        let proxies = TrustedProxies {
            addresses: "10.0.0.0/8".parse().expect("a range"),
            header: ForwardedHeader::XForwardedFor,
        };
        for (peer, lines, expected) in [
            // The peer is not a trusted proxy.
            ("203.0.113.5", &["198.51.100.1"][..], "203.0.113.5"),
            ("10.0.0.1", &["198.51.100.1"], "198.51.100.1"),
            // The client's own entries come before those of the proxy.
            ("10.0.0.1", &["1.1.1.1, 198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["1.1.1.1", "198.51.100.1"], "198.51.100.1"),
            (
                "10.0.0.1",
                &["1.1.1.1, 198.51.100.1, 10.0.0.2"],
                "198.51.100.1",
            ),
            ("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
            ("10.0.0.1", &["198.51.100.1:4711"], "198.51.100.1"),
            ("10.0.0.1", &["[2001:db8::1]:4711"], "2001:db8::1"),
            ("10.0.0.1", &["2001:db8::1"], "2001:db8::1"),
            ("10.0.0.1", &["1.1.1.1, unknown"], "10.0.0.1"),
            ("10.0.0.1", &["\u{e9}, 198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["198.51.100.1, \u{e9}"], "10.0.0.1"),
            (
                "10.0.0.1",
                &["1.1.1.1", "\u{e9},198.51.100.1,10.0.0.2"],
                "198.51.100.1",
            ),
            ("10.0.0.1", &["1.1.1.1,"], "10.0.0.1"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("::ffff:10.0.0.1", &["198.51.100.1"], "198.51.100.1"),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                let line = HeaderValue::from_bytes(line.as_bytes()).expect("a value");
                headers.append(X_FORWARDED_FOR, line);
            }
            let client = proxies.client(address(peer), &headers);
            assert_eq!(client, address(expected), "{peer} {lines:?}");
        }
    }

    #[test]
    fn only_the_chosen_forwarded_header_counts() {
        let mut headers = HeaderMap::new();
        headers.insert(X_FORWARDED_FOR, HeaderValue::from_static("1.1.1.1"));
        for (line, expected) in [
            ("for=192.0.2.60;proto=http;by=203.0.113.43", "192.0.2.60"),
            (
                "for=1.2.3.4, FOR=\"[2001:db8:cafe::17]:4711\"",
                "2001:db8:cafe::17",
            ),
            ("for=1.2.3.4, for=_hidden", "10.0.0.1"),
            ("for=\"1.2.3.4, for=192.0.2.60:_port", "192.0.2.60"),
            ("by=10.0.0.1; FOR=192.0.2.60 ;proto=http", "192.0.2.60"),
            ("for=unknown", "10.0.0.1"),
            ("proto=https", "10.0.0.1"),
        ] {
            headers.insert(FORWARDED, HeaderValue::from_static(line));
            let proxies = TrustedProxies {
                addresses: "10.0.0.1".parse().expect("a range"),
                header: ForwardedHeader::Forwarded,
            };
            let client = proxies.client(address("10.0.0.1"), &headers);
            assert_eq!(client, address(expected), "{line}");
        }
    }

    #[test]
    fn ipv6_clients_are_counted_by_network() {
        let network = |text| client_network(address(text));
        assert_eq!(network("2001:db8:1:2:3::4"), network("2001:db8:1:2::99"));
        assert_ne!(network("2001:db8:1:2::1"), network("2001:db8:1:3::1"));
        assert_eq!(network("::ffff:192.0.2.1"), address("192.0.2.1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
    }
}
