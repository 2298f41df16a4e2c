//! Connections to another broker, with or without TLS. Only this module names the TLS library for
//! outgoing MQTT connections.

use std::path::PathBuf;
use std::sync::Arc;

use homeport_listen::{ByteStream, PemFileError, certificates_of_file, provider};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use super::settings::{BridgeAddress, BridgeSettings, BridgeTls};

/// Why TLS to a broker cannot be configured.
#[derive(Debug, thiserror::Error)]
pub enum BridgeTlsError {
    #[error(transparent)]
    File(#[from] PemFileError),
    #[error("cannot read {}", .0.display())]
    Key(PathBuf, #[source] pem::Error),
    #[error("this machine has no root certificates; name a file of them with bridge.tls_ca")]
    NoRoots,
    #[error("the host {0:?} cannot be the name in a certificate")]
    Name(String),
    #[error("the certificates are invalid")]
    Config(#[from] rustls::Error),
}

/// Opens connections to a broker.
pub(super) struct Dial {
    address: BridgeAddress,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Dial {
    pub(super) fn new(settings: &BridgeSettings) -> Result<Self, BridgeTlsError> {
        let address = settings.address.clone();
        let tls = match address.has_tls {
            true => {
                let name = ServerName::try_from(address.host.clone())
                    .map_err(|_| BridgeTlsError::Name(address.host.clone()))?;
                Some((connector(&settings.tls)?, name))
            }
            false => None,
        };
        Ok(Self { address, tls })
    }

    /// Opens a connection; the error is the reason of a failure.
    pub(super) async fn connect(&self) -> Result<Box<dyn ByteStream>, String> {
        let BridgeAddress { host, port, .. } = &self.address;
        let stream = TcpStream::connect((host.as_str(), *port)).await;
        let stream = stream.map_err(|error| format!("cannot connect: {error}"))?;
        // Waiting to fill a packet would only delay acknowledgements.
        let _ = stream.set_nodelay(true);
        match &self.tls {
            None => Ok(Box::new(stream)),
            Some((connector, name)) => {
                let stream = connector.connect(name.clone(), stream).await;
                Ok(Box::new(
                    stream.map_err(|error| format!("TLS failed: {error}"))?,
                ))
            }
        }
    }
}

fn connector(tls: &BridgeTls) -> Result<TlsConnector, BridgeTlsError> {
    let mut roots = RootCertStore::empty();
    match &tls.ca {
        Some(path) => {
            for certificate in certificates_of_file(path)? {
                roots.add(certificate)?;
            }
        }
        None => {
            // Unusable certificates of the machine are skipped.
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            if roots.is_empty() {
                return Err(BridgeTlsError::NoRoots);
            }
        }
    }
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let config = match &tls.client {
        Some((certificate, key)) => {
            let chain = certificates_of_file(certificate)?;
            let key = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| BridgeTlsError::Key(key.clone(), error))?;
            builder.with_client_auth_cert(chain, key)?
        }
        None => builder.with_no_client_auth(),
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

impl std::fmt::Debug for Dial {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Dial")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
