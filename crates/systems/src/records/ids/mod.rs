//! Ids of groups, devices and journals: where they come from, and how they are encoded.

mod dispenser;
mod hashids;

pub(super) use dispenser::{DEVICES_TAG, GROUPS_TAG, JOURNALS_TAG};
pub use dispenser::{DispensedId, IdTag, NewIdTag};
pub use hashids::{Hashids, RecordIds};
