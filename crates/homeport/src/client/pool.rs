//! HTTP connections of commands to a server, with or without TLS. They follow neither proxies nor redirects, so a token
//! reaches only the named server.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use homeport_server::tls_provider;
use http_body_util::Full;
use hyper::Uri;
use hyper::body::Bytes;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::client::pinned::pinned_config;

const CONNECT_WITHIN: Duration = Duration::from_secs(5);

pub(crate) type Pool = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// The certificates that a server with TLS may have.
#[derive(Debug, Clone)]
pub(crate) enum Trust {
    /// Certificates for its name, from this machine's root certificates.
    Roots,
    /// The certificate in a file, in DER.
    Certificate(PathBuf),
}

/// A connection pool for a server, with a maximum number of idle connections.
pub(crate) fn pool(server: &Uri, idle_max: usize, trust: Trust) -> anyhow::Result<Pool> {
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(CONNECT_WITHIN));
    connector.set_nodelay(true);
    connector.enforce_http(false);
    let tls = match trust {
        Trust::Certificate(file) => pinned_config(file)?,
        Trust::Roots => roots_config(server)?,
    };
    Ok(Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(idle_max)
        .pool_timer(TokioTimer::new())
        // Callers retry and count requests whose connection was closed.
        .retry_canceled_requests(false)
        .build(HttpsConnector::from((connector, tls))))
}

fn roots_config(server: &Uri) -> anyhow::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    if server.scheme_str() == Some("https") {
        // Unusable root certificates are skipped.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        ensure!(
            !roots.is_empty(),
            "{server} needs TLS, but this machine has no root certificates; name a file of them in SSL_CERT_FILE"
        );
    }
    Ok(ClientConfig::builder_with_provider(tls_provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}
