//! The HTTP interface on a port.

use std::future::Future;

use axum::Router;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

pub use homeport_wire::listen::{
    AddressRanges, AllowedOrigins, ConnectionLimits, Connections, ForwardedHeader, Limits,
    REFUSALS_MAX, TrustedProxies,
};

/// Serves `router` until `stop` is done; requests that are being answered then are finished.
pub async fn serve(
    listener: TcpListener,
    limits: Limits,
    router: Router,
    stop: impl Future<Output = ()>,
) {
    let service = TowerToHyperService::new(router);
    homeport_wire::listen::serve(listener, limits, service, stop).await;
}
