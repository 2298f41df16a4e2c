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
