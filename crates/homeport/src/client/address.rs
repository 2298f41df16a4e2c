//! Address files in the data directory of a running server, by which commands find its HTTP port and its port for
//! DynamoDB's protocol; and the certificate of a server with TLS.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::config::Url;

const FILE: &str = "address";
const DYNAMODB_FILE: &str = "dynamodb-address";
/// The server's certificate, by which commands recognize it: its names need not include the address.
const CERTIFICATE_FILE: &str = "address-certificate.der";

/// The URL of a port.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerUrl {
    listening: SocketAddr,
    has_tls: bool,
}

impl ServerUrl {
    pub(crate) fn new(listening: SocketAddr, has_tls: bool) -> Self {
        Self { listening, has_tls }
    }

    /// A URL for connecting: a wildcard address becomes loopback.
    pub(crate) fn reachable(self) -> Self {
        Self {
            listening: reachable(self.listening),
            ..self
        }
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.has_tls { "https" } else { "http" };
        write!(formatter, "{scheme}://{}", self.listening)
    }
}

/// Writes the HTTP address.
pub(crate) fn write(data_dir: &Path, url: &ServerUrl) -> anyhow::Result<()> {
    write_url(data_dir, FILE, url)
}

/// Writes the address of the port for DynamoDB's protocol.
pub(crate) fn write_dynamodb(data_dir: &Path, url: &ServerUrl) -> anyhow::Result<()> {
    write_url(data_dir, DYNAMODB_FILE, url)
}

/// Writes the server's certificate, in DER.
pub(crate) fn write_certificate(data_dir: &Path, certificate: &[u8]) -> anyhow::Result<()> {
    write_to(data_dir, CERTIFICATE_FILE, certificate)
}

fn write_url(data_dir: &Path, file: &str, url: &ServerUrl) -> anyhow::Result<()> {
    write_to(data_dir, file, format!("{}\n", url.reachable()).as_bytes())
}

fn write_to(data_dir: &Path, file: &str, content: &[u8]) -> anyhow::Result<()> {
    let path = data_dir.join(file);
    let unfinished = data_dir.join(format!("{file}.new"));
    fs::write(&unfinished, content)
        .and_then(|()| fs::rename(&unfinished, &path))
        .with_context(|| format!("writing {}", path.display()))
}

/// Removes the addresses that a killed server left behind.
///
/// IMPORTANT: call it while holding the directory's lock, before anything else. A command that finds the directory locked
/// sends the admin token to the address, and another program may be listening on an old one.
pub(crate) fn forget(data_dir: &Path) -> anyhow::Result<()> {
    remove(data_dir, FILE)?;
    remove(data_dir, CERTIFICATE_FILE)?;
    forget_dynamodb(data_dir)
}

/// Removes the address of the port for DynamoDB's protocol, also while holding the directory's lock. A running server
/// with another store has no such address.
pub(crate) fn forget_dynamodb(data_dir: &Path) -> anyhow::Result<()> {
    remove(data_dir, DYNAMODB_FILE)
}

fn remove(data_dir: &Path, file: &str) -> anyhow::Result<()> {
    let path = data_dir.join(file);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// The file with the certificate of the server that uses a directory, if it has TLS.
pub(crate) fn certificate_file(data_dir: &Path) -> PathBuf {
    data_dir.join(CERTIFICATE_FILE)
}

/// The HTTP address of the server that uses a directory.
pub(crate) fn read(data_dir: &Path) -> Option<Url> {
    read_from(data_dir, FILE)
}

/// The address of that server's port for DynamoDB's protocol.
pub(crate) fn read_dynamodb(data_dir: &Path) -> Option<Url> {
    read_from(data_dir, DYNAMODB_FILE)
}

fn read_from(data_dir: &Path, file: &str) -> Option<Url> {
    let text = fs::read_to_string(data_dir.join(file)).ok()?;
    text.trim().parse().ok()
}

fn reachable(listening: SocketAddr) -> SocketAddr {
    let ip = match listening.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listening.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_read_back_until_removed() {
        let directory = tempfile::tempdir().expect("a directory");
        let read = || read(directory.path()).map(|url| url.to_string());
        assert_eq!(read(), None);
        for (listening, expected) in [
            (("0.0.0.0:81", false), "http://127.0.0.1:81"),
            (("[::]:82", false), "http://[::1]:82"),
            (("10.0.0.7:83", true), "https://10.0.0.7:83"),
        ] {
            let (listening, has_tls) = listening;
            let url = ServerUrl::new(listening.parse().expect("an address"), has_tls);
            write(directory.path(), &url).expect("written");
            assert_eq!(read().as_deref(), Some(expected));
        }
        let listening = "0.0.0.0:84".parse().expect("an address");
        let url = ServerUrl::new(listening, false);
        write_dynamodb(directory.path(), &url).expect("written");
        write_certificate(directory.path(), b"DER").expect("written");
        let dynamodb = || read_dynamodb(directory.path()).map(|url| url.to_string());
        assert_eq!(dynamodb().as_deref(), Some("http://127.0.0.1:84"));
        forget(directory.path()).expect("removed");
        assert!(!certificate_file(directory.path()).exists());
        assert_eq!(dynamodb(), None);
        forget(directory.path()).expect("nothing there");
        assert_eq!(read(), None);
    }
}
