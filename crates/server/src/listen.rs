//! Serves HTTP on a port.

use std::future::Future;

use axum::Router;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

pub use homeport_listen::{
    AddressRanges, AllowedOrigins, ConnectionLimits, Connections, ForwardedHeader, Limits,
    REFUSALS_MAX, TrustedProxies,
};

/// Serves `router` until `stop` completes, then finishes the requests in progress.
pub async fn serve(
    listener: TcpListener,
    limits: Limits,
    router: Router,
    stop: impl Future<Output = ()>,
) {
    let service = TowerToHyperService::new(router);
    homeport_listen::serve(listener, limits, service, stop).await;
}
