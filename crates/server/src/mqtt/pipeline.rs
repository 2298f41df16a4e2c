//! Messages that a client published or another broker delivered: the rules process them, the queues of
//! durable sessions store them, and then they are acknowledged. A connection processes many messages at
//! a time and keeps their order.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use homeport_store::StoreError;
use homeport_systems::messages::{IntakeError, Message};

use super::broker::{Broker, Route, Session};
use super::codec::{Reason, Refusal};
use super::settings::WINDOW_BYTES_MAX;

/// Messages of a connection that are not acknowledged yet.
#[derive(Default)]
pub(super) struct Pipeline {
    processing: FuturesOrdered<BoxFuture<'static, Processed>>,
    storing: FuturesOrdered<BoxFuture<'static, Stored>>,
    bytes: usize,
}

/// A message after the rules.
struct Processed {
    pending: Pending,
    outcome: Result<Arc<Message>, Fault>,
}

/// A message after the queues.
struct Stored {
    pending: Pending,
    outcome: Result<Option<Route>, Fault>,
}

/// How a message is acknowledged, and its size in the window.
#[derive(Clone, Copy)]
struct Pending {
    /// `None` with QoS 0.
    packet_id: Option<u16>,
    bytes: usize,
}

enum Fault {
    /// The publisher gets the reason, in the order of its messages.
    Refused(Reason),
    Store(StoreError),
}

impl From<IntakeError> for Fault {
    fn from(error: IntakeError) -> Self {
        match error {
            // Only MQTT 5 tells the publisher. The intake has counted and logged the message.
            IntakeError::Refused(_) => Self::Refused(Reason::PAYLOAD_INVALID),
            IntakeError::Store(error) => Self::Store(error),
        }
    }
}

impl Pipeline {
    pub(super) fn is_empty(&self) -> bool {
        self.processing.is_empty() && self.storing.is_empty()
    }

    fn len(&self) -> usize {
        self.processing.len() + self.storing.len()
    }

    /// Whether another message may be read.
    pub(super) fn has_room(&self, inflight_max: u16) -> bool {
        self.len() < usize::from(inflight_max) && self.bytes < WINDOW_BYTES_MAX
    }

    /// Starts to process a message.
    pub(super) fn begin(&mut self, broker: &Broker, message: Message, packet_id: Option<u16>) {
        let bytes = message.topic.len() + message.payload.len();
        let pending = Pending { packet_id, bytes };
        self.bytes += bytes;
        let broker = broker.clone();
        self.processing.push_back(Box::pin(async move {
            let outcome = broker.take_in(&message).await;
            Processed {
                pending,
                outcome: outcome.map(|()| Arc::new(message)).map_err(Fault::from),
            }
        }));
    }

    /// Refuses a message, in the order of the messages.
    pub(super) fn begin_refusal(&mut self, packet_id: u16, reason: Reason) {
        let processed = Processed {
            pending: Pending {
                packet_id: Some(packet_id),
                bytes: 0,
            },
            outcome: Err(Fault::Refused(reason)),
        };
        self.processing
            .push_back(Box::pin(std::future::ready(processed)));
    }

    /// Processes messages as far as possible and acknowledges finished ones; returns whether there was
    /// progress. `from` is the session of the publisher, unless it is a bridge.
    ///
    /// # Errors
    /// When the store fails: nothing is acknowledged, and the sender sends the messages again.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
        broker: &Broker,
        from: Option<&Arc<Session>>,
        mut answer: impl FnMut(u16, Reason),
    ) -> Result<bool, Refusal> {
        let mut has_moved = false;
        while let Poll::Ready(Some(processed)) = self.processing.poll_next_unpin(context) {
            has_moved = true;
            if let Some(stored) = self.finish_processing(processed, broker, from) {
                self.finish_storing(stored, broker, &mut answer)?;
            }
        }
        while let Poll::Ready(Some(stored)) = self.storing.poll_next_unpin(context) {
            has_moved = true;
            self.finish_storing(stored, broker, &mut answer)?;
        }
        Ok(has_moved)
    }

    /// Routes a message; returns it if nothing has to be stored and no earlier message is being stored.
    fn finish_processing(
        &mut self,
        processed: Processed,
        broker: &Broker,
        from: Option<&Arc<Session>>,
    ) -> Option<Stored> {
        let pending = processed.pending;
        let route = processed.outcome.map(|message| {
            // IMPORTANT: messages come here in the order in which they were published.
            broker.route(&message, from)
        });
        let stored: BoxFuture<'static, Stored> = match route {
            Ok(mut route) if !route.is_done() => {
                let broker = broker.clone();
                Box::pin(async move {
                    let outcome = broker.store(&mut route).await;
                    Stored {
                        pending,
                        outcome: outcome.map(|()| Some(route)).map_err(Fault::Store),
                    }
                })
            }
            finished => {
                let stored = Stored {
                    pending,
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
        self.bytes -= stored.pending.bytes;
        let reason = match stored.outcome {
            Ok(route) => {
                if let Some(route) = route {
                    broker.deliver(route);
                }
                Reason::SUCCESS
            }
            Err(Fault::Refused(reason)) => reason,
            Err(Fault::Store(error)) => {
                tracing::warn!(%error, "the store failed to store a message");
                if stored.pending.packet_id.is_none() {
                    broker.meters().dropped_store.increment(1);
                    return Ok(());
                }
                return Err(Refusal::new(
                    Reason::SERVER_BUSY,
                    "the store cannot store messages now; send them again",
                ));
            }
        };
        if let Some(packet_id) = stored.pending.packet_id {
            answer(packet_id, reason);
        }
        Ok(())
    }
}
