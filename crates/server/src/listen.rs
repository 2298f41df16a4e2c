//! Serves HTTP on a port.

use std::future::Future;

use axum::Router;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

pub use homeport_listen::{
    AddressRanges, AllowedOrigins, Certificate, CertificateError, CertificateFiles,
    ConnectionLimits, Connections, ForwardedHeader, Limits, REFUSALS_MAX, Tls, TlsError,
    TlsProtocols, TlsVersion, TrustedProxies, certificates_of_file, provider as tls_provider,
    serve_redirects,
};

/// Serves `router`, with or without TLS, until `stop` completes, then finishes the requests in progress.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Tls>,
    limits: Limits,
    router: Router,
    stop: impl Future<Output = ()>,
) {
    let service = TowerToHyperService::new(router);
    homeport_listen::serve(listener, tls, limits, service, stop).await;
}
