//! The durable outbox: everything that Homeport sends to the outside world goes through here. Push
//! messages, notifications of alerts and requests of rules are kinds of its entries.
//!
//! An entry is in the store before its sender is answered. A worker claims what is due, sends it,
//! records the answer, and retries with growing pauses until the entry is delivered or given up. The
//! claim is durable before anything leaves. A message without an answer, because of the network or
//! because the process ended, is sent again: it may arrive twice, and it is never forgotten. Every
//! step is noted in the entry's trace.
//!
//! What is stored of a kind, and what it sends, belongs to that kind's module.

mod commit;
mod delivery;
mod entry;
mod error;
mod queue;
mod retry;
mod send;
mod stored;
mod worker;

pub use delivery::{Delivery, DeliveryState, Step};
pub use error::SendError;

pub(crate) use commit::commit;
pub(crate) use entry::{Decision, Entry, OutboxKind, Place};
pub(crate) use queue::{OpenCounter, Queue, next_turn_at};
pub(crate) use retry::{DeliveryEvent, RetryPolicy};
pub(crate) use send::{due_entries, due_entries_in, save, send_batch, send_each};
pub(crate) use stored::{
    DUE_AT_MS, STATE, STEP, STEP_AT, STEPS, VERSION, WORK, WORK_PARTITION, parse_steps,
    stored_steps, work_index,
};
pub(crate) use worker::{OutboxWorker, run_until};
