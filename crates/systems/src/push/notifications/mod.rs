//! Notifications: their content, accepting them, and how they are stored.

mod accept;
mod message;
mod notification;
mod outcome;
pub(super) mod stored;

pub use accept::Accepted;
pub use message::{InterruptionLevel, Message, NewMessage, Priority};
pub use notification::{DeviceDelivery, Notification, NotificationId};
pub use outcome::PushOutcome;
