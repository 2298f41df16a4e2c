//! MQTT over a WebSocket: the binary messages are one stream of bytes, whatever their boundaries.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use bytes::{Buf as _, Bytes};
use futures_util::{Sink as _, Stream as _};
use homeport_listen::{Connection as HttpConnection, ConnectionRefused};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::broker::Broker;
use super::listen::serve_one;
use super::transport::{Peer, TransportKind};

/// The subprotocol that clients must name, as MQTT requires.
const SUBPROTOCOL: &str = "mqtt";
/// Sizes of buffers; small, because most connections are idle.
const BUFFER_BYTES: usize = 4096;

/// Why a WebSocket is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoUpgrade {
    /// The client does not name the subprotocol.
    OtherProtocol,
    /// There are too many connections.
    Full(ConnectionRefused),
}

/// Upgrades a request to an MQTT connection. `http` is the connection of the request, if it is known.
pub(crate) fn upgrade(
    upgrade: WebSocketUpgrade,
    broker: Broker,
    http: Option<&HttpConnection>,
    client: IpAddr,
) -> Result<Response, NoUpgrade> {
    let max = broker.settings().packet_bytes_max;
    let upgrade = upgrade
        .protocols([SUBPROTOCOL])
        .max_message_size(max)
        .max_frame_size(max)
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES);
    if upgrade.selected_protocol().is_none() {
        return Err(NoUpgrade::OtherProtocol);
    }
    let room = std::sync::Arc::clone(broker.connection_room());
    let permit = room
        .try_acquire_owned()
        .map_err(|_| NoUpgrade::Full(ConnectionRefused::Full))?;
    let upgraded = http.map(HttpConnection::upgrade).transpose();
    let upgraded = upgraded.map_err(NoUpgrade::Full)?;
    Ok(upgrade.on_upgrade(move |socket| async move {
        let stream = WebSocketStream {
            socket,
            unread: Bytes::new(),
        };
        let peer = Peer {
            address: client,
            transport: TransportKind::WebSocket,
        };
        serve_one(Box::new(stream), broker, peer, (permit, upgraded)).await;
    }))
}

struct WebSocketStream {
    socket: WebSocket,
    /// The unread rest of the last message.
    unread: Bytes,
}

impl AsyncRead for WebSocketStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.unread.is_empty() {
            let message = ready!(Pin::new(&mut self.socket).poll_next(context));
            match message {
                Some(Ok(Message::Binary(bytes))) => self.unread = bytes,
                // The library answers them.
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Text(_))) => {
                    return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
                }
                Some(Ok(Message::Close(_))) | None => return Poll::Ready(Ok(())),
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
            }
        }
        let len = self.unread.len().min(buffer.remaining());
        buffer.put_slice(&self.unread[..len]);
        self.unread.advance(len);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for WebSocketStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut socket = Pin::new(&mut self.socket);
        ready!(socket.as_mut().poll_ready(context)).map_err(io::Error::other)?;
        let message = Message::Binary(Bytes::copy_from_slice(bytes));
        socket.start_send(message).map_err(io::Error::other)?;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.socket).poll_flush(context);
        flushed.map_err(io::Error::other)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.socket).poll_close(context);
        closed.map_err(io::Error::other)
    }
}
