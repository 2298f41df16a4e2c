//! A loopback port that leads to a server with TLS, for clients that cannot check its certificate themselves.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use hyper::Uri;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::client::pinned::pinned_config;

/// A tunnel, which is closed when this is dropped.
#[derive(Debug)]
pub(crate) struct Tunnel {
    pub(crate) address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Tunnel {
    /// Opens a tunnel to `server`, whose certificate is in a file.
    pub(crate) async fn open(server: &Uri, certificate: PathBuf) -> anyhow::Result<Self> {
        let target = server.authority().context("a URL with a host")?.to_string();
        let host = server.host().unwrap_or_default();
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())?;
        let connector = TlsConnector::from(Arc::new(pinned_config(certificate)?));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (connector, target, name) = (connector.clone(), target.clone(), name.clone());
                tokio::spawn(async move {
                    if let Err(error) = carry(client, &target, connector, name).await {
                        tracing::warn!(%error, "the connection to the server failed");
                    }
                });
            }
        });
        Ok(Self { address, accepting })
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn carry(
    mut client: TcpStream,
    target: &str,
    connector: TlsConnector,
    name: ServerName<'static>,
) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    let server = TcpStream::connect(target).await?;
    server.set_nodelay(true)?;
    let mut server = connector.connect(name, server).await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use homeport_server::{
        Certificate, CertificateFiles, Connections, Limits, Tls, TlsProtocols, TlsVersion,
    };
    use rcgen::{CertificateParams, KeyPair};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    /// Sends a request through the tunnel; the whole response.
    async fn ask(tunnel: &Tunnel) -> String {
        let mut stream = TcpStream::connect(tunnel.address).await.expect("connects");
        let request = b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        let mut answer = String::new();
        let exchange = async {
            stream.write_all(request).await?;
            stream.read_to_string(&mut answer).await
        };
        // A tunnel that leads nowhere is closed.
        let _ = tokio::time::timeout(PATIENCE, exchange)
            .await
            .expect("in time");
        answer
    }

    #[tokio::test]
    async fn tunnel_leads_to_the_pinned_server_only() {
        let directory = tempfile::tempdir().expect("a directory");
        let files = CertificateFiles {
            certificate: directory.path().join("cert.pem"),
            key: directory.path().join("key.pem"),
        };
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(["db.example.com".to_owned()]).expect("a name");
        let issued = params.self_signed(&key).expect("a certificate");
        fs::write(&files.certificate, issued.pem()).expect("written");
        fs::write(&files.key, key.serialize_pem()).expect("written");
        let certificate = Certificate::load(files).expect("a certificate");
        let tls = Tls::new(&certificate, TlsVersion::V1_2, TlsProtocols::Http, None);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a port");
        let server = format!("https://{}", listener.local_addr().expect("an address"));
        let limits = Limits {
            connections_max: 16,
            connections: Connections::default(),
            header_timeout: PATIENCE,
            idle_timeout: PATIENCE,
        };
        tokio::spawn(homeport_server::serve(
            listener,
            Some(tls.expect("TLS")),
            limits,
            axum::Router::new(),
            std::future::pending(),
        ));
        let pinned = directory.path().join("pinned.der");
        fs::write(&pinned, certificate.der()).expect("written");
        let tunnel = Tunnel::open(&server.parse().expect("a URL"), pinned.clone()).await;
        let tunnel = tunnel.expect("a tunnel");
        assert!(ask(&tunnel).await.starts_with("HTTP/1.1 404 "));
        fs::write(&pinned, b"another").expect("written");
        assert_eq!(ask(&tunnel).await, "");
    }
}
