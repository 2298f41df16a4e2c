//! One connection, from its first byte to its last. It is one task that never waits for a single
//! thing: it reads while there is room for what it reads, moves on what is on its way, and writes
//! what its client takes. No message gets a task of its own, and a full window is simply not read.

mod handshake;
mod inbound;
mod outbound;
mod packet_ids;

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt as _;
use homeport_systems::messages::{Delivery, Publisher};
use tokio::time::{Instant, Sleep};

use super::access::Access;
use super::broker::{Broker, Mailbox, Parting, Session};
use super::codec::{self, Reason, Refusal, Version, Will};
use super::pipeline::Pipeline;
use super::settings::{DRAIN_MAX, FAREWELL_MAX, WRITE_STALL_MAX};
use super::transport::{Io, Transport};
use handshake::Admitted;
use inbound::Change;
use outbound::Outbound;

/// A client with its session.
struct Connection {
    broker: Broker,
    io: Transport,
    version: Version,
    access: Access,
    session: Arc<Session>,
    mailbox: Arc<Mailbox>,
    link_id: u64,
    publisher: Publisher,
    will: Option<Box<Will>>,
    /// What the client said at its end about how long its session lives.
    new_expiry: Option<u32>,
    aliases: HashMap<u16, String>,
    pipeline: Pipeline,
    /// A message whose key sends too many. Nothing more is read until it has its turn.
    held: Option<Box<Held>>,
    change: Option<Change>,
    outbound: Outbound,
    clock: SilenceClock,
}

/// A message that waits for its turn.
struct Held {
    publish: Box<codec::Publish>,
    turn: Pin<Box<Sleep>>,
}

impl Held {
    fn new(publish: Box<codec::Publish>, wait: Duration) -> Box<Self> {
        let turn = Box::pin(tokio::time::sleep(wait));
        Box::new(Self { publish, turn })
    }
}

/// How a connection ends.
enum End {
    /// The client said so.
    Left,
    /// The bytes ended.
    Lost(io::Error),
    /// The server does not go on.
    Refused(Refusal),
}

/// When the client was last heard, and when it last took something.
struct SilenceClock {
    silence_max: Option<Duration>,
    heard_at: Instant,
    moved_at: Instant,
    timer: Pin<Box<Sleep>>,
}

impl From<Refusal> for End {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Serves a connection until it ends.
pub(super) async fn serve(io: Box<dyn Io>, broker: Broker, client: IpAddr) {
    // Boxed: what the beginning needs is not to be part of a connection for all of its life.
    let welcome = Box::pin(handshake::welcome(Transport::new(io), &broker, client));
    let Some(mut connection) = welcome.await.map(Box::new) else {
        return;
    };
    let meters = broker.meters();
    meters.connections.increment(1);
    let end = std::future::poll_fn(|context| connection.poll(context)).await;
    Box::pin(connection.finish(end)).await;
    meters.connections.decrement(1);
}

/// Answers a connection that there is no room for.
pub(super) async fn refuse_busy(io: Box<dyn Io>, broker: &Broker) {
    handshake::refuse_busy(Transport::new(io), broker).await;
}

/// MQTT's QoS; of 2 the most that is granted.
fn delivery_of(qos: u8) -> Delivery {
    match qos {
        0 => Delivery::AtMostOnce,
        _ => Delivery::AtLeastOnce,
    }
}

impl Connection {
    fn new(admitted: Admitted, io: Transport) -> Self {
        let now = Instant::now();
        let silence_max = admitted.silence_max();
        let attached = admitted.attached;
        Self {
            io,
            version: admitted.version,
            publisher: Publisher {
                client_id: Some(attached.session.client_id.clone()),
                principal: Some(admitted.access.principal()),
            },
            access: admitted.access,
            session: attached.session,
            mailbox: attached.mailbox,
            link_id: attached.link_id,
            will: admitted.will,
            new_expiry: None,
            aliases: HashMap::new(),
            pipeline: Pipeline::default(),
            held: None,
            change: None,
            outbound: Outbound::new(
                admitted.receive_maximum,
                admitted.maximum_packet_size,
                attached.unacknowledged,
            ),
            clock: SilenceClock {
                silence_max,
                heard_at: now,
                moved_at: now,
                timer: Box::pin(tokio::time::sleep_until(
                    now + silence_max.unwrap_or(WRITE_STALL_MAX),
                )),
            },
            broker: admitted.broker,
        }
    }

    /// Goes on as far as possible; ready when the connection ends.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<End> {
        // Before looking, so that nothing is missed that comes in between.
        self.mailbox.register(context.waker());
        loop {
            match self.step(context) {
                Ok(true) => {}
                Ok(false) => return Poll::Pending,
                Err(end) => return Poll::Ready(end),
            }
        }
    }

    /// One round; whether anything moved.
    fn step(&mut self, context: &mut Context<'_>) -> Result<bool, End> {
        if let Some(refusal) = self.mailbox.closed() {
            return Err(refusal.into());
        }
        let mut has_moved = self.poll_pipeline(context)?;
        has_moved |= self.poll_held(context)?;
        if let Some(Poll::Ready(outcome)) =
            (self.change.as_mut()).map(|change| change.poll_unpin(context))
        {
            self.change = None;
            self.finish_change(outcome)?;
            has_moved = true;
        }
        has_moved |= self.poll_outbound(context)?;
        if let Poll::Ready(written) = self.io.poll_write(context) {
            written.map_err(End::Lost)?;
            self.clock.moved_at = Instant::now();
            has_moved = true;
        }
        has_moved |= self.poll_read(context)?;
        self.poll_clock(context)?;
        Ok(has_moved)
    }

    /// Moves on what the client published; whether anything moved.
    fn poll_pipeline(&mut self, context: &mut Context<'_>) -> Result<bool, Refusal> {
        let (write, version) = (&mut self.io.write, self.version);
        self.pipeline
            .poll(context, &self.broker, Some(&self.session), |id, reason| {
                codec::puback(write, version, id, reason);
            })
    }

    /// Deals with what was read, then reads more; whether there was anything.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Result<bool, End> {
        let mut has_moved = false;
        let max = self.broker.settings().packet_bytes_max;
        while self.may_read() {
            match codec::next(&mut self.io.read, self.version, max)? {
                Some(packet) => {
                    has_moved = true;
                    self.clock.heard_at = Instant::now();
                    self.handle(packet)?;
                }
                None => {
                    self.io.release_read();
                    match self.io.poll_fill(context) {
                        Poll::Ready(Ok(0)) => {
                            return Err(End::Lost(io::ErrorKind::UnexpectedEof.into()));
                        }
                        Poll::Ready(Ok(_)) => has_moved = true,
                        Poll::Ready(Err(error)) => return Err(End::Lost(error)),
                        Poll::Pending => return Ok(has_moved),
                    }
                }
            }
        }
        Ok(has_moved)
    }

    /// Ends a connection whose client says nothing or takes nothing for too long.
    fn poll_clock(&mut self, context: &mut Context<'_>) -> Result<(), End> {
        if !self.may_read() && self.io.write.is_empty() {
            // It is not read because of us: what it says cannot be heard.
            self.clock.heard_at = Instant::now();
        }
        loop {
            let clock = &mut self.clock;
            let silent_at = clock.silence_max.map(|max| clock.heard_at + max);
            let stalled_at = clock.moved_at + WRITE_STALL_MAX;
            let stalled_at = (!self.io.write.is_empty()).then_some(stalled_at);
            let Some(first) = silent_at.into_iter().chain(stalled_at).min() else {
                return Ok(());
            };
            // It is moved when it rings, not with every packet, which would cost more.
            if first < clock.timer.deadline() {
                clock.timer.as_mut().reset(first);
            }
            if clock.timer.as_mut().poll(context).is_pending() {
                return Ok(());
            }
            let now = Instant::now();
            if stalled_at.is_some_and(|at| at <= now) {
                return Err(End::Lost(io::ErrorKind::TimedOut.into()));
            }
            if silent_at.is_some_and(|at| at <= now) {
                return Err(End::Refused(Refusal::new(
                    Reason::KEEP_ALIVE_TIMEOUT,
                    "nothing was heard for too long",
                )));
            }
            clock.timer.as_mut().reset(first);
        }
    }

    /// Finishes accepted packets, sends DISCONNECT and detaches the session.
    async fn finish(mut self: Box<Self>, end: End) {
        let drained = std::future::poll_fn(|context| self.poll_drain(context));
        let mut end = match tokio::time::timeout(DRAIN_MAX, drained).await {
            Ok(Err(refusal)) if matches!(end, End::Left) => End::Refused(refusal),
            _ => end,
        };
        if let End::Refused(refusal) = &mut end {
            self.broker.meters().refused(refusal.reason);
            tracing::debug!(
                client_id = self.session.client_id,
                reason = refusal.reason.name(),
                detail = refusal.detail,
                "an MQTT connection was ended"
            );
            codec::disconnect(
                &mut self.io.write,
                self.version,
                refusal.reason,
                refusal.detail,
            );
        }
        if let End::Lost(error) = &end {
            tracing::trace!(%error, "an MQTT connection was lost");
        } else {
            let farewell = async {
                self.io.drain().await?;
                self.io.shut_down().await
            };
            // A client that does not take it gets none.
            let _ = tokio::time::timeout(FAREWELL_MAX, farewell).await;
        }
        self.remove_acknowledged().await;
        let will = self.will.take().map(|will| {
            let delay_secs = will.delay_secs;
            (will.into_message(&self), delay_secs)
        });
        let parting = Parting {
            unacknowledged: self.outbound.unacknowledged(),
            will,
            expiry_secs: self.new_expiry,
        };
        self.broker
            .detach(&self.session, self.link_id, parting)
            .await;
    }

    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        self.poll_pipeline(context)?;
        match self.pipeline.is_empty() {
            true => Poll::Ready(Ok(())),
            false => Poll::Pending,
        }
    }
}
