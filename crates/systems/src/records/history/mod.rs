//! The records of journals: adding, reading and deleting them, and the latest record of each journal.

mod add_record;
mod delete_record;
mod latest;
mod ranges;
mod record;

pub use add_record::{AddedRecord, NewRecord};
pub use ranges::RecordRange;
pub use record::Record;
