//! Connections to a server's HTTP interface, plain or over TLS, as commands use them. Neither proxies
//! nor redirects are followed: a token goes to the server that was named and to nobody else.

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

/// A pool for the server at an address, which keeps so many idle connections.
pub(crate) fn pool(server: &Uri, idle_max: usize) -> anyhow::Result<Pool> {
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(CONNECT_WITHIN));
    connector.set_nodelay(true);
    connector.enforce_http(false);
    let mut roots = RootCertStore::empty();
    if server.scheme_str() == Some("https") {
        // Some of a machine's certificates may be unusable, and the others do.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        ensure!(
            !roots.is_empty(),
            "{server} needs TLS, and this machine has no root certificates; SSL_CERT_FILE can name a file of them"
        );
    }
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(idle_max)
        .pool_timer(TokioTimer::new())
        // A request that found its connection closed is the caller's to repeat, and to count.
        .retry_canceled_requests(false)
        .build(HttpsConnector::from((connector, tls))))
}
