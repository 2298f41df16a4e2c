//! Serves the protocol on a port.

use std::convert::Infallible;
use std::future::Future;

use homeport_listen::Limits;
use hyper::service::service_fn;
use tokio::net::TcpListener;

use crate::service::Service;

impl Service {
    /// Serves `listener` until `stop` completes. Requests in progress are finished.
    pub async fn serve(self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let limits = Limits {
            connections_max: self.config().connections_max,
            connections: self.config().connections.clone(),
            header_timeout: self.config().header_timeout,
            idle_timeout: self.config().idle_timeout,
        };
        let tls = self.config().tls.clone();
        let handle = service_fn(move |request| {
            let service = self.clone();
            async move { Ok::<_, Infallible>(service.handle_from_network(request).await) }
        });
        homeport_listen::serve(listener, tls, limits, handle, stop).await;
    }
}
