//! MQTT on a port.

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use homeport_listen::{Acceptor, ByteStream, ConnectionRefused, Connections, REFUSALS_MAX, Tls};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

use super::broker::Broker;
use super::connection;
use super::transport::{Peer, TransportKind};

/// When the operating system probes a silent peer: clients may turn MQTT's own keep-alive off.
const PROBE_AFTER: Duration = Duration::from_secs(300);

/// Accepts MQTT clients, with or without TLS, until `stop` completes. Their connections end when the
/// broker ends.
pub async fn serve_mqtt(
    listener: TcpListener,
    tls: Option<Tls>,
    broker: Broker,
    connections: Connections,
    stop: impl Future<Output = ()>,
) {
    let mut stop = std::pin::pin!(stop);
    let mut acceptor = Acceptor::new(listener);
    let refusals = Arc::new(Semaphore::new(REFUSALS_MAX));
    loop {
        let (stream, peer) = tokio::select! {
            () = &mut stop => return,
            accepted = acceptor.accept() => accepted,
        };
        let room = Arc::clone(broker.connection_room());
        let admitted = match room.try_acquire_owned() {
            Ok(of_broker) => {
                let of_all = connections.admit(peer.ip());
                of_all.map(|of_all| (of_broker, of_all))
            }
            Err(TryAcquireError::NoPermits) => Err(ConnectionRefused::Full),
            // The broker has ended.
            Err(TryAcquireError::Closed) => return,
        };
        let permits = match admitted {
            Ok(permits) => permits,
            Err(reason) => {
                acceptor.log_refusal(peer, &reason);
                // A TLS handshake would cost more than the refusal is worth.
                if let (None, Ok(permit)) = (&tls, Arc::clone(&refusals).try_acquire_owned()) {
                    tokio::spawn(refuse(stream, broker.clone(), peer.ip(), permit));
                }
                continue;
            }
        };
        let _ =
            SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(PROBE_AFTER));
        let client = peer.ip();
        match tls.clone() {
            None => {
                let peer = Peer {
                    address: client,
                    transport: TransportKind::Tcp,
                };
                tokio::spawn(serve_one(Box::new(stream), broker.clone(), peer, permits));
            }
            Some(tls) => {
                tokio::spawn(serve_tls(stream, tls, broker.clone(), client, permits));
            }
        }
    }
}

async fn refuse(stream: TcpStream, broker: Broker, client: IpAddr, permit: OwnedSemaphorePermit) {
    connection::refuse_busy(Box::new(stream), &broker, client).await;
    drop(permit);
}

async fn serve_tls<P>(stream: TcpStream, tls: Tls, broker: Broker, client: IpAddr, permits: P) {
    let limit = broker.settings().connect_timeout;
    match tokio::time::timeout(limit, tls.accept(stream)).await {
        Ok(Ok(stream)) => {
            let peer = Peer {
                address: client,
                transport: TransportKind::Tls,
            };
            serve_one(stream, broker, peer, permits).await;
        }
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

/// Serves a connection, which holds its permits until it ends.
pub(super) async fn serve_one<P>(io: Box<dyn ByteStream>, broker: Broker, peer: Peer, permits: P) {
    connection::serve(io, broker, peer).await;
    drop(permits);
}
