//! The parents of records: groups have devices, and devices have journals.

mod attributes;
mod devices;
mod group_reaction;
mod groups;
mod journals;

pub use attributes::{ATTRIBUTE_DEPTH_MAX, Attributes};
pub use devices::{Device, DeviceChange, NewDevice};
pub use group_reaction::GroupReaction;
pub use groups::{Group, GroupChange, NewGroup};
pub use journals::{Journal, JournalChange, NewJournal};
