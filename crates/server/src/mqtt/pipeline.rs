//! What a client published, or a foreign broker delivered, on its way: taken in, then stored for those
//! who must not lose it, then answered. Many messages are on their way at one time; none overtakes
//! another.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use homeport_store::StoreError;
use homeport_systems::messages::Message;

use super::broker::{Broker, Route, Session};
use super::codec::{Reason, Refusal};
use super::settings::WINDOW_BYTES_MAX;

/// Messages of a connection that have not been answered.
#[derive(Default)]
pub(super) struct Pipeline {
    taking: FuturesOrdered<BoxFuture<'static, Taken>>,
    storing: FuturesOrdered<BoxFuture<'static, Stored>>,
    bytes: usize,
}

/// A message at the end of the first stage.
struct Taken {
    ticket: Ticket,
    outcome: Result<Arc<Message>, Fault>,
}

/// A message at the end of the second stage.
struct Stored {
    ticket: Ticket,
    outcome: Result<Option<Route>, Fault>,
}

/// How a message is answered, and what it counts for.
#[derive(Clone, Copy)]
struct Ticket {
    /// `None` with QoS 0.
    packet_id: Option<u16>,
    bytes: usize,
}

enum Fault {
    /// The publisher gets the error, in the order of its messages.
    Refused(Reason),
    Store(StoreError),
}

impl Pipeline {
    pub(super) fn is_empty(&self) -> bool {
        self.taking.is_empty() && self.storing.is_empty()
    }

    fn len(&self) -> usize {
        self.taking.len() + self.storing.len()
    }

    /// Whether another message may be read.
    pub(super) fn has_room(&self, inflight_max: u16) -> bool {
        self.len() < usize::from(inflight_max) && self.bytes < WINDOW_BYTES_MAX
    }

    /// Starts a message on its way.
    pub(super) fn begin(&mut self, broker: &Broker, message: Message, packet_id: Option<u16>) {
        let bytes = message.topic.len() + message.payload.len();
        let ticket = Ticket { packet_id, bytes };
        self.bytes += bytes;
        let broker = broker.clone();
        self.taking.push_back(Box::pin(async move {
            let outcome = broker.take_in(&message).await;
            Taken {
                ticket,
                outcome: outcome.map(|()| Arc::new(message)).map_err(Fault::Store),
            }
        }));
    }

    /// Answers a message with a refusal, in its turn.
    pub(super) fn begin_refusal(&mut self, packet_id: u16, reason: Reason) {
        let taken = Taken {
            ticket: Ticket {
                packet_id: Some(packet_id),
                bytes: 0,
            },
            outcome: Err(Fault::Refused(reason)),
        };
        self.taking.push_back(Box::pin(std::future::ready(taken)));
    }

    /// Moves messages on as far as possible and answers those that are at their end; whether any moved.
    /// `from` is the session that published them, if it is one of ours.
    ///
    /// # Errors
    /// When the store fails: nothing is answered, and whoever sent the messages sends them again.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
        broker: &Broker,
        from: Option<&Arc<Session>>,
        mut answer: impl FnMut(u16, Reason),
    ) -> Result<bool, Refusal> {
        let mut has_moved = false;
        while let Poll::Ready(Some(taken)) = self.taking.poll_next_unpin(context) {
            has_moved = true;
            if let Some(stored) = self.finish_taking(taken, broker, from) {
                self.finish_storing(stored, broker, &mut answer)?;
            }
        }
        while let Poll::Ready(Some(stored)) = self.storing.poll_next_unpin(context) {
            has_moved = true;
            self.finish_storing(stored, broker, &mut answer)?;
        }
        Ok(has_moved)
    }

    /// Routes a message; it is handed back when nothing has to be stored and none is before it.
    fn finish_taking(
        &mut self,
        taken: Taken,
        broker: &Broker,
        from: Option<&Arc<Session>>,
    ) -> Option<Stored> {
        let ticket = taken.ticket;
        let route = taken.outcome.map(|message| {
            // IMPORTANT: messages come here in the order in which they were published.
            broker.route(&message, from)
        });
        let stored: BoxFuture<'static, Stored> = match route {
            Ok(mut route) if !route.is_done() => {
                let broker = broker.clone();
                Box::pin(async move {
                    let outcome = broker.store(&mut route).await;
                    Stored {
                        ticket,
                        outcome: outcome.map(|()| Some(route)).map_err(Fault::Store),
                    }
                })
            }
            finished => {
                let stored = Stored {
                    ticket,
                    outcome: finished.map(|_| None),
                };
                if self.storing.is_empty() {
                    return Some(stored);
                }
                Box::pin(std::future::ready(stored))
            }
        };
        self.storing.push_back(stored);
        None
    }

    fn finish_storing(
        &mut self,
        stored: Stored,
        broker: &Broker,
        answer: &mut impl FnMut(u16, Reason),
    ) -> Result<(), Refusal> {
        self.bytes -= stored.ticket.bytes;
        let reason = match stored.outcome {
            Ok(route) => {
                if let Some(route) = route {
                    broker.deliver(route);
                }
                Reason::SUCCESS
            }
            Err(Fault::Refused(reason)) => reason,
            Err(Fault::Store(error)) => {
                tracing::warn!(%error, "the store could not keep a message");
                if stored.ticket.packet_id.is_none() {
                    broker.meters().dropped_store.increment(1);
                    return Ok(());
                }
                return Err(Refusal::new(
                    Reason::SERVER_BUSY,
                    "the store cannot keep messages now; send them again",
                ));
            }
        };
        if let Some(packet_id) = stored.ticket.packet_id {
            answer(packet_id, reason);
        }
        Ok(())
    }
}
