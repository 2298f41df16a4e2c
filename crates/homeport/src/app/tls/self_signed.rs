//! A certificate for a first try, from an authority of this data directory. Clients trust the authority, so they need nothing new
//! when the certificate is renewed.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;

use anyhow::Context as _;
use homeport_server::{Certificate, CertificateFiles};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

use crate::client::address::ServerUrl;
use crate::config::Settings;
use crate::storage::secrets::{TLS_CA_FILE, TLS_CA_KEY_FILE, write_private};

const CERTIFICATE_FILE: &str = "tls-cert.pem";
const KEY_FILE: &str = "tls-key.pem";
/// The name of every authority. It has to stay, because a certificate names the authority that issued it.
const CA_NAME: &str = "Homeport self-signed CA";
const CA_DAYS: i64 = 3650;
/// Clients refuse certificates of more than 825 or 398 days.
const CERTIFICATE_DAYS: i64 = 365;
/// A certificate is renewed, and an authority replaced, when it expires within this time.
const RENEW_BEFORE_SECS: i64 = 30 * 24 * 60 * 60;
/// Addresses for documentation. No packet is sent to them: connecting selects our own address.
const ELSEWHERE: [(IpAddr, IpAddr); 2] = [
    (
        IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    ),
    (
        IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
    ),
];

/// The self-signed certificate of a data directory.
#[derive(Debug, Clone)]
pub(crate) struct SelfSigned {
    data_dir: PathBuf,
    /// Host names and addresses, which the certificate is for.
    names: Vec<String>,
}

impl SelfSigned {
    pub(super) fn new(settings: &Settings) -> Self {
        let listening = [
            Some(settings.http.listen),
            settings.dynamodb.listen.0,
            settings.mqtt_tls_listen(),
        ];
        Self {
            data_dir: settings.data.dir.clone(),
            names: names(listening.into_iter().flatten(), host_name().as_deref()),
        }
    }

    pub(super) fn files(&self) -> CertificateFiles {
        CertificateFiles {
            certificate: self.data_dir.join(CERTIFICATE_FILE),
            key: self.data_dir.join(KEY_FILE),
        }
    }

    /// The certificate that clients have to trust.
    pub(crate) fn ca_file(&self) -> PathBuf {
        self.data_dir.join(TLS_CA_FILE)
    }

    /// Prints what clients need to trust this server.
    pub(crate) fn print_usage(&self, url: &ServerUrl) {
        let ca_file = self.ca_file();
        print_line!(
            "TLS: self-signed certificate for {}; clients have to trust {}:",
            self.names.join(", "),
            ca_file.display()
        );
        print_line!(
            "  curl --cacert {} {}/healthz",
            ca_file.display(),
            url.reachable()
        );
    }

    /// Creates the certificate, unless there is one for the same names that does not expire soon.
    pub(super) fn ensure(&self) -> anyhow::Result<()> {
        self.ensure_at(Timestamp::now())
    }

    fn ensure_at(&self, now: Timestamp) -> anyhow::Result<()> {
        let is_usable = |files| {
            Certificate::load(files).is_ok_and(|certificate| {
                certificate.expires_at() - now.as_second() > RENEW_BEFORE_SECS
            })
        };
        let files = self.files();
        let first_line = self.first_line();
        let is_for_names =
            fs::read_to_string(&files.certificate).is_ok_and(|text| text.starts_with(&first_line));
        let has_ca = is_usable(CertificateFiles {
            certificate: self.ca_file(),
            key: self.data_dir.join(TLS_CA_KEY_FILE),
        });
        if has_ca && is_for_names && is_usable(files.clone()) {
            return Ok(());
        }
        let params = ca_params(now)?;
        let ca_key = match has_ca {
            true => self.ca_key()?,
            false => self.create_ca(&params)?,
        };
        let key = KeyPair::generate()?;
        let certificate = certificate_params(self.names.clone(), now)?
            .signed_by(&key, &Issuer::from_params(&params, &ca_key))?;
        write_private(&files.key, &key.serialize_pem())?;
        write_private(&files.certificate, &(first_line + &certificate.pem()))
    }

    /// The names, before the certificate in its file, as text that PEM readers skip.
    fn first_line(&self) -> String {
        format!("Homeport, for {}\n", self.names.join(", "))
    }

    fn ca_key(&self) -> anyhow::Result<KeyPair> {
        let path = self.data_dir.join(TLS_CA_KEY_FILE);
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        KeyPair::from_pem(&text).with_context(|| format!("reading {}", path.display()))
    }

    fn create_ca(&self, params: &CertificateParams) -> anyhow::Result<KeyPair> {
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        write_private(&self.data_dir.join(TLS_CA_KEY_FILE), &key.serialize_pem())?;
        write_private(&self.ca_file(), &certificate.pem())?;
        Ok(key)
    }
}

fn ca_params(now: Timestamp) -> anyhow::Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, CA_NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    set_validity(&mut params, now, CA_DAYS)?;
    Ok(params)
}

fn certificate_params(names: Vec<String>, now: Timestamp) -> anyhow::Result<CertificateParams> {
    let mut params = CertificateParams::new(names)?;
    params
        .distinguished_name
        .push(DnType::CommonName, "Homeport");
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    set_validity(&mut params, now, CERTIFICATE_DAYS)?;
    Ok(params)
}

/// Valid from yesterday, because the clocks of clients differ.
fn set_validity(params: &mut CertificateParams, now: Timestamp, days: i64) -> anyhow::Result<()> {
    let today = now.to_zoned(TimeZone::UTC).date();
    let time = |date: Date| -> anyhow::Result<_> {
        let (month, day) = (u8::try_from(date.month())?, u8::try_from(date.day())?);
        Ok(date_time_ymd(i32::from(date.year()), month, day))
    };
    params.not_before = time(today.checked_sub(1.day())?)?;
    params.not_after = time(today.checked_add(days.days())?)?;
    Ok(())
}

/// The names of this machine, and the addresses that it listens on.
fn names(listening: impl Iterator<Item = SocketAddr>, host: Option<&str>) -> Vec<String> {
    let mut names = vec!["localhost".to_owned()];
    if let Some(host) = host {
        names.push(host.to_owned());
        if !host.contains('.') {
            // The name in the local network (mDNS).
            names.push(format!("{host}.local"));
        }
    }
    let mut addresses = BTreeSet::from([
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
    ]);
    for address in listening.map(|listening| listening.ip()) {
        match address.is_unspecified() {
            true => addresses.extend(own_addresses(address)),
            false => _ = addresses.insert(address.to_canonical()),
        }
    }
    names.extend(addresses.iter().map(IpAddr::to_string));
    names
}

/// The addresses that this machine uses to reach others, if it listens on all addresses of a family. Listening on all of IPv6
/// usually includes IPv4.
fn own_addresses(listening: IpAddr) -> impl Iterator<Item = IpAddr> {
    ELSEWHERE
        .into_iter()
        .filter(move |(any, _)| listening.is_ipv6() || any.is_ipv4())
        .filter_map(|(any, elsewhere)| {
            let socket = UdpSocket::bind((any, 0)).ok()?;
            socket.connect((elsewhere, 9)).ok()?;
            Some(socket.local_addr().ok()?.ip())
        })
}

/// The name of this machine, if it can be in a certificate.
#[cfg(unix)]
fn host_name() -> Option<String> {
    let system = rustix::system::uname();
    let name = system.nodename().to_str().ok()?.to_ascii_lowercase();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    (!name.is_empty() && name != "localhost" && name.bytes().all(is_name)).then_some(name)
}

#[cfg(not(unix))]
fn host_name() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const DAY_SECS: i64 = 24 * 60 * 60;

    fn self_signed(data_dir: &Path, names: &[&str]) -> SelfSigned {
        SelfSigned {
            data_dir: data_dir.to_owned(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    /// The contents of the authority's file and of the certificate's file after a start at `now`.
    fn start(certificate: &SelfSigned, now: Timestamp) -> (String, String) {
        certificate.ensure_at(now).expect("created");
        let read = |path: &Path| fs::read_to_string(path).expect("a file");
        (
            read(&certificate.ca_file()),
            read(&certificate.files().certificate),
        )
    }

    #[test]
    fn certificate_is_kept_until_close_to_expiry() {
        let directory = tempfile::tempdir().expect("a directory");
        let certificate = self_signed(directory.path(), &["localhost", "127.0.0.1"]);
        let now = Timestamp::now();
        let after = |days: i64| now + jiff::SignedDuration::from_secs(days * DAY_SECS);
        let first = start(&certificate, now);
        assert_eq!(start(&certificate, after(300)), first);
        let second = start(&certificate, after(340));
        assert_eq!(
            second.0, first.0,
            "clients would have to trust another authority"
        );
        assert_ne!(second.1, first.1);
        let third = start(&certificate, after(3640));
        assert_ne!(third.0, first.0, "the authority has expired");
    }

    #[test]
    fn new_names_get_a_new_certificate() {
        let directory = tempfile::tempdir().expect("a directory");
        let now = Timestamp::now();
        let first = start(&self_signed(directory.path(), &["localhost"]), now);
        let second = start(&self_signed(directory.path(), &["localhost", "hub"]), now);
        assert_eq!(first.0, second.0);
        assert_ne!(first.1, second.1);
    }

    #[test]
    fn unusable_files_are_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let certificate = self_signed(directory.path(), &["localhost"]);
        let now = Timestamp::now();
        let first = start(&certificate, now);
        fs::write(certificate.files().key, "").expect("written");
        let second = start(&certificate, now);
        assert_eq!(first.0, second.0);
        assert!(Certificate::load(certificate.files()).is_ok());
        fs::remove_file(directory.path().join(TLS_CA_KEY_FILE)).expect("removed");
        assert_ne!(start(&certificate, now).0, first.0);
    }

    #[test]
    #[cfg(unix)]
    fn all_files_are_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().expect("a directory");
        start(
            &self_signed(directory.path(), &["localhost"]),
            Timestamp::now(),
        );
        let entries = fs::read_dir(directory.path()).expect("a directory");
        let modes: Vec<u32> = entries
            .map(|entry| entry.expect("an entry").metadata().expect("a file"))
            .map(|file| file.permissions().mode() & 0o777)
            .collect();
        assert_eq!(modes, [0o600; 4]);
    }

    #[test]
    fn names_include_host_and_listen_addresses() {
        let listening = ["10.0.0.7:1", "[2001:db8::7]:1", "127.0.0.1:1"];
        let listening = listening
            .iter()
            .map(|text| text.parse().expect("an address"));
        let found = names(listening, Some("hub"));
        let expected = [
            "localhost",
            "hub",
            "hub.local",
            "10.0.0.7",
            "127.0.0.1",
            "::1",
            "2001:db8::7",
        ];
        assert_eq!(found, expected);
    }
}
