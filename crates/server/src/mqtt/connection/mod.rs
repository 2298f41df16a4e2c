//! One connection of a client. It is one task that polls everything: it reads while the window has room,
//! processes messages, and writes as fast as its client reads. No message has a task of its own, and a
//! connection with a full window is not read.

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
use homeport_listen::ByteStream;
use homeport_systems::messages::{Delivery, Publisher};
use tokio::time::{Instant, Sleep};

use super::broker::{Broker, ClientProblem, ConnectedClient, Mailbox, Parting, Session};
use super::codec::{self, Reason, Refusal, Version, Will};
use super::pipeline::Pipeline;
use super::refusal_log::{Refused, RefusedClient};
use super::settings::{DRAIN_MAX, FAREWELL_MAX, WRITE_STALL_MAX};
use super::transport::{Peer, Transport};
use handshake::Admitted;
use inbound::Change;
use outbound::Outbound;

/// The connection of a client with its session.
struct Connection {
    broker: Broker,
    io: Transport,
    version: Version,
    client: Arc<ConnectedClient>,
    session: Arc<Session>,
    mailbox: Arc<Mailbox>,
    link_id: u64,
    publisher: Publisher,
    will: Option<Box<Will>>,
    /// The topic of the message that ended the connection.
    refused_topic: Option<Box<str>>,
    /// The expiry interval that the client sent with DISCONNECT.
    new_expiry: Option<u32>,
    aliases: HashMap<u16, String>,
    pipeline: Pipeline,
    /// A message that waits because of the rate limit of its key. Nothing else is read meanwhile.
    held: Option<Box<Held>>,
    change: Option<Change>,
    outbound: Outbound,
    /// The longest SUBACK with a reason string; 0 if the client wants none.
    reasoned_suback_max: usize,
    clock: SilenceClock,
}

/// A message that waits because of a rate limit.
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

/// Why a connection ended.
enum End {
    /// The client sent DISCONNECT.
    Left,
    /// The connection was lost.
    Lost(io::Error),
    /// The server ends it.
    Refused(Refusal),
}

/// When the client last sent something, and when it last read something.
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
pub(super) async fn serve(io: Box<dyn ByteStream>, broker: Broker, peer: Peer) {
    // Boxed, so that its memory is freed once the connection is open.
    let welcome = Box::pin(handshake::welcome(Transport::new(io), &broker, peer));
    let Some(mut connection) = welcome.await.map(Box::new) else {
        return;
    };
    let meters = broker.meters();
    meters.connections.increment(1);
    let end = std::future::poll_fn(|context| connection.poll(context)).await;
    Box::pin(connection.finish(end)).await;
    meters.connections.decrement(1);
}

/// Refuses a connection because there are too many.
pub(super) async fn refuse_busy(io: Box<dyn ByteStream>, broker: &Broker, client: IpAddr) {
    handshake::refuse_busy(Transport::new(io), broker, client).await;
}

/// The delivery for a QoS; 2 becomes 1, which is the maximum.
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
            version: admitted.client.version,
            publisher: Publisher {
                client_id: Some(attached.session.name.client_id.to_string()),
                principal: Some(admitted.client.access.principal()),
            },
            client: admitted.client,
            session: attached.session,
            mailbox: attached.mailbox,
            link_id: attached.link_id,
            will: admitted.will,
            refused_topic: None,
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
            reasoned_suback_max: match admitted.wants_reason_strings {
                true => admitted.maximum_packet_size,
                false => 0,
            },
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

    fn record_refusal(&self, refused: Refused<'_>, why: Refusal) {
        let client = RefusedClient {
            address: self.client.peer.address,
            client_id: &self.session.name.client_id,
            key_id: self.client.access.key_id(),
        };
        self.broker.refusals().record(refused, client, why);
        let now = self.broker.now();
        let problem = ClientProblem::refusal(now, refused, why);
        self.session.note_problem(problem);
    }

    /// Makes progress as far as possible; ready when the connection ends.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<End> {
        // Before the checks, so that no wake-up is missed.
        self.mailbox.register(context.waker());
        loop {
            match self.step(context) {
                Ok(true) => {}
                Ok(false) => return Poll::Pending,
                Err(end) => return Poll::Ready(end),
            }
        }
    }

    /// One round; returns whether there was progress.
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

    /// Processes published messages; returns whether there was progress.
    fn poll_pipeline(&mut self, context: &mut Context<'_>) -> Result<bool, Refusal> {
        let (write, version) = (&mut self.io.write, self.version);
        self.pipeline
            .poll(context, &self.broker, Some(&self.session), |id, reason| {
                codec::puback(write, version, id, reason);
            })
    }

    /// Processes read packets and reads more; returns whether there was progress.
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

    /// Ends a connection whose client sends or reads nothing for too long.
    fn poll_clock(&mut self, context: &mut Context<'_>) -> Result<(), End> {
        if !self.may_read() && self.io.write.is_empty() {
            // The connection is not being read, so silence proves nothing.
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
            // The timer is moved when it fires: moving it with every packet would cost more.
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
                    "the client sent nothing within its keep-alive",
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
            let topic = self.refused_topic.as_deref();
            self.record_refusal(Refused::Connection(topic), *refusal);
            codec::disconnect(
                &mut self.io.write,
                self.version,
                refusal.reason,
                refusal.detail,
            );
        }
        if let End::Lost(error) = &end {
            tracing::trace!(%error, "an MQTT connection was lost");
            let problem = ClientProblem::lost(self.broker.now(), error);
            self.session.note_problem(problem);
        } else {
            let farewell = async {
                self.io.drain().await?;
                self.io.shut_down().await
            };
            // The client may be gone.
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
