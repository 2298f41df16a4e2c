//! TLS for the connections of all ports. Only this module names the TLS library for incoming connections.

mod certificate;
mod pem;
mod plain_http;
mod validity;

use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::server::{
    ResolvesServerCert, VerifierBuilderError, WebPkiClientVerifier,
};
use tokio_rustls::rustls::{
    self, ALL_VERSIONS, RootCertStore, ServerConfig, SupportedProtocolVersion, version,
};

pub use certificate::{Certificate, CertificateError, CertificateFiles};
pub use pem::{PemFileError, certificates_of_file};
pub(crate) use plain_http::{RESPONSE as PLAIN_HTTP_RESPONSE, is_plain_http};

/// A stream of bytes: TCP, TLS or a WebSocket.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// The oldest version of TLS that clients may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TlsVersion {
    #[default]
    V1_2,
    V1_3,
}

/// The protocols that clients can negotiate (ALPN).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsProtocols {
    /// HTTP/1.1 and HTTP/2.
    Http,
    /// Whatever the port speaks; nothing is negotiated.
    Any,
}

/// The TLS configuration of a port; cheap to clone.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

/// Why TLS cannot be configured.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error(transparent)]
    File(#[from] PemFileError),
    #[error("an issuer of client certificates is invalid")]
    Issuer(#[source] rustls::Error),
    #[error("the issuers of client certificates are invalid")]
    Verifier(#[from] VerifierBuilderError),
    #[error("TLS cannot be configured")]
    Config(#[from] rustls::Error),
}

impl Tls {
    /// TLS with a certificate, which may be replaced while the port is open. If `client_ca` names a PEM file, clients must have a
    /// certificate from one of the issuers in it.
    ///
    /// # Errors
    /// If the issuers of client certificates cannot be read.
    pub fn new(
        certificate: &Certificate,
        min_version: TlsVersion,
        protocols: TlsProtocols,
        client_ca: Option<&Path>,
    ) -> Result<Self, TlsError> {
        let builder = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(versions(min_version))?;
        let builder = match client_ca {
            Some(path) => builder.with_client_cert_verifier(client_verifier(path)?),
            None => builder.with_no_client_auth(),
        };
        let resolver: Arc<dyn ResolvesServerCert> = Arc::new(certificate.clone());
        let mut config = builder.with_cert_resolver(resolver);
        config.alpn_protocols = match protocols {
            TlsProtocols::Http => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            TlsProtocols::Any => Vec::new(),
        };
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Completes the handshake. The caller limits its time.
    ///
    /// # Errors
    /// If the handshake fails.
    pub async fn accept<S: ByteStream + 'static>(
        &self,
        stream: S,
    ) -> io::Result<Box<dyn ByteStream>> {
        Ok(Box::new(self.0.accept(stream).await?))
    }
}

/// The one crypto provider.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

static ONLY_1_3: [&SupportedProtocolVersion; 1] = [&version::TLS13];

fn versions(min: TlsVersion) -> &'static [&'static SupportedProtocolVersion] {
    match min {
        TlsVersion::V1_2 => ALL_VERSIONS,
        TlsVersion::V1_3 => &ONLY_1_3,
    }
}

fn client_verifier(path: &Path) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates_of_file(path)? {
        roots.add(certificate).map_err(TlsError::Issuer)?;
    }
    Ok(WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build()?)
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Tls").finish_non_exhaustive()
    }
}
