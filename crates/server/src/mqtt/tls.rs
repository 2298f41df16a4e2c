//! TLS for MQTT clients, with client certificates if they are required. Only this module names the TLS
//! library for incoming connections.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};

use super::transport::Io;

/// The TLS configuration of a port; cheap to clone.
#[derive(Clone)]
pub struct MqttTls(TlsAcceptor);

/// Why TLS cannot be configured.
#[derive(Debug, thiserror::Error)]
pub enum MqttTlsError {
    #[error("cannot read {}", .0.display())]
    File(PathBuf, #[source] pem::Error),
    #[error("{} contains no certificate", .0.display())]
    Empty(PathBuf),
    #[error("an issuer of client certificates is invalid")]
    Issuer(#[source] rustls::Error),
    #[error("the issuers of client certificates are invalid")]
    Verifier(#[from] VerifierBuilderError),
    #[error("the certificate and its key are invalid or do not belong together")]
    Config(#[from] rustls::Error),
}

impl MqttTls {
    /// Reads the server's certificate chain and key, and the issuers of client certificates if clients must
    /// have one. All files are PEM.
    ///
    /// # Errors
    /// When a file cannot be read or is invalid.
    pub fn load(
        certificate: &Path,
        key: &Path,
        client_ca: Option<&Path>,
    ) -> Result<Self, MqttTlsError> {
        let provider = Arc::new(ring::default_provider());
        let chain = certificates(certificate)?;
        let key = PrivateKeyDer::from_pem_file(key)
            .map_err(|error| MqttTlsError::File(key.to_owned(), error))?;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let builder = match client_ca {
            Some(path) => builder.with_client_cert_verifier(verifier(path, provider)?),
            None => builder.with_no_client_auth(),
        };
        let config = builder.with_single_cert(chain, key)?;
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<Box<dyn Io>> {
        Ok(Box::new(self.0.accept(stream).await?))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, MqttTlsError> {
    let failed = |error| MqttTlsError::File(path.to_owned(), error);
    let all = CertificateDer::pem_file_iter(path).map_err(failed)?;
    let all = all.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    if all.is_empty() {
        return Err(MqttTlsError::Empty(path.to_owned()));
    }
    Ok(all)
}

fn verifier(
    path: &Path,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, MqttTlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(MqttTlsError::Issuer)?;
    }
    Ok(WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?)
}

impl std::fmt::Debug for MqttTls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("MqttTls").finish_non_exhaustive()
    }
}
