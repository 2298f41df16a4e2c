//! What a client published, on its way: taken in, then stored for those who must not lose it, then
//! answered. Many messages are on their way at one time; none overtakes another.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use homeport_store::StoreError;
use homeport_systems::messages::Message;

use super::Connection;
use crate::mqtt::broker::Route;
use crate::mqtt::codec::{self, Reason, Refusal};
use crate::mqtt::settings::WINDOW_BYTES_MAX;

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
    /// None with QoS 0.
    packet_id: Option<u16>,
    bytes: usize,
}

enum Fault {
    /// The publisher is told, in its turn.
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
}

impl Connection {
    /// Starts a message on its way.
    pub(super) fn begin(&mut self, message: Message, packet_id: Option<u16>) {
        let bytes = message.topic.len() + message.payload.len();
        let ticket = Ticket { packet_id, bytes };
        self.broker.meters().received[usize::from(packet_id.is_some())].increment(1);
        self.pipeline.bytes += bytes;
        let broker = self.broker.clone();
        self.pipeline.taking.push_back(Box::pin(async move {
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
        let taking = &mut self.pipeline.taking;
        taking.push_back(Box::pin(std::future::ready(taken)));
    }

    /// Moves messages on; whether any moved.
    ///
    /// # Errors
    /// When the store fails: the client is not answered, comes back and sends again.
    pub(super) fn poll_pipeline(&mut self, context: &mut Context<'_>) -> Result<bool, Refusal> {
        let mut has_moved = false;
        while let Poll::Ready(Some(taken)) = self.pipeline.taking.poll_next_unpin(context) {
            has_moved = true;
            self.finish_taking(taken)?;
        }
        while let Poll::Ready(Some(stored)) = self.pipeline.storing.poll_next_unpin(context) {
            has_moved = true;
            self.finish_storing(stored)?;
        }
        Ok(has_moved)
    }

    fn finish_taking(&mut self, taken: Taken) -> Result<(), Refusal> {
        let ticket = taken.ticket;
        let route = taken.outcome.map(|message| {
            // IMPORTANT: messages come here in the order in which they were published.
            self.broker.route(&message, Some(&self.session))
        });
        let stored: BoxFuture<'static, Stored> = match route {
            Ok(mut route) if !route.is_done() => {
                let broker = self.broker.clone();
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
                if self.pipeline.storing.is_empty() {
                    return self.finish_storing(stored);
                }
                Box::pin(std::future::ready(stored))
            }
        };
        self.pipeline.storing.push_back(stored);
        Ok(())
    }

    fn finish_storing(&mut self, stored: Stored) -> Result<(), Refusal> {
        self.pipeline.bytes -= stored.ticket.bytes;
        let reason = match stored.outcome {
            Ok(route) => {
                if let Some(route) = route {
                    self.broker.deliver(route);
                }
                Reason::SUCCESS
            }
            Err(Fault::Refused(reason)) => reason,
            Err(Fault::Store(error)) => {
                tracing::warn!(%error, "the store could not keep a message");
                if stored.ticket.packet_id.is_none() {
                    self.broker.meters().dropped_store.increment(1);
                    return Ok(());
                }
                return Err(Refusal::new(
                    Reason::SERVER_BUSY,
                    "the store cannot keep messages now; send them again",
                ));
            }
        };
        if let Some(packet_id) = stored.ticket.packet_id {
            codec::puback(&mut self.io.write, self.version, packet_id, reason);
        }
        Ok(())
    }
}
