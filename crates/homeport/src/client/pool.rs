//! HTTP connections of commands to a server, with or without TLS. They follow neither proxies nor redirects, so a token
//! reaches only the named server.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use http_body_util::Full;
use hyper::Uri;
use hyper::body::Bytes;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const CONNECT_WITHIN: Duration = Duration::from_secs(5);

pub(crate) type Pool = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// A connection pool for a server, with a maximum number of idle connections.
pub(crate) fn pool(server: &Uri, idle_max: usize) -> anyhow::Result<Pool> {
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(CONNECT_WITHIN));
    connector.set_nodelay(true);
    connector.enforce_http(false);
    let mut roots = RootCertStore::empty();
    if server.scheme_str() == Some("https") {
        // Unusable root certificates are skipped.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        ensure!(
            !roots.is_empty(),
            "{server} needs TLS, but this machine has no root certificates; name a file of them in SSL_CERT_FILE"
        );
    }
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(idle_max)
        .pool_timer(TokioTimer::new())
        // Callers retry and count requests whose connection was closed.
        .retry_canceled_requests(false)
        .build(HttpsConnector::from((connector, tls))))
}
