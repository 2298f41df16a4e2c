//! Broadcasts: one message to all active devices, or to those of one platform.
//!
//! A broadcast is a durable job. The worker walks over the active devices and puts a notification for each user into
//! the outbox, which sends it like any other.

mod accept;
mod broadcast;
mod finish;
mod index;
mod queueing;
mod stored;
mod tally;
mod walk;

pub use broadcast::{Broadcast, BroadcastId, BroadcastState, DeviceCounts};
pub(super) use queueing::Queued;
pub(super) use tally::Tally;
