//! MQTT on a port.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;

use super::broker::Broker;
use super::connection;
use super::tls::MqttTls;
use super::transport::Io;

/// How long to wait after a failure to accept, which is mostly a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// When the operating system asks whether a silent peer is there at all: clients may turn MQTT's own
/// keep-alive off.
const PROBE_AFTER: Duration = Duration::from_secs(300);

/// Accepts MQTT clients, with TLS or without, until `stop` is done. Their connections are the
/// broker's: they end when it does.
pub async fn serve_mqtt(
    listener: TcpListener,
    tls: Option<MqttTls>,
    broker: Broker,
    stop: impl Future<Output = ()>,
) {
    let mut stop = std::pin::pin!(stop);
    loop {
        let accept = async {
            let permit = broker.room().acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            () = &mut stop => return,
            accepted = accept => accepted,
        };
        let Ok(permit) = permit else {
            // The broker has ended.
            return;
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept an MQTT connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // Answers are written at once: waiting to fill a packet only delays them.
        let _ = stream.set_nodelay(true);
        let _ =
            SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(PROBE_AFTER));
        match tls.clone() {
            None => {
                tokio::spawn(serve_one(Box::new(stream), broker.clone(), permit));
            }
            Some(tls) => {
                tokio::spawn(serve_tls(stream, tls, broker.clone(), permit));
            }
        }
    }
}

async fn serve_tls(stream: TcpStream, tls: MqttTls, broker: Broker, permit: OwnedSemaphorePermit) {
    let limit = broker.settings().connect_timeout;
    match tokio::time::timeout(limit, tls.accept(stream)).await {
        Ok(Ok(stream)) => serve_one(stream, broker, permit).await,
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

/// Serves a connection that counts among those that are allowed.
pub(super) async fn serve_one(io: Box<dyn Io>, broker: Broker, permit: OwnedSemaphorePermit) {
    connection::serve(io, broker).await;
    drop(permit);
}

impl Broker {
    fn room(&self) -> Arc<tokio::sync::Semaphore> {
        Arc::clone(self.connection_room())
    }
}
