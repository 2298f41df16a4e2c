//! Notifications: their content, accepting them, and how they are stored.

mod accept;
mod idempotency;
mod message;
pub(super) mod notification;
mod outcome;
pub(super) mod stored;

pub use accept::Accepted;
pub(super) use idempotency::{Added, KeyMarker};
pub use message::{InterruptionLevel, Message, NewMessage, Priority};
pub use notification::{DeviceDelivery, Notification, NotificationId};
pub use outcome::PushOutcome;
