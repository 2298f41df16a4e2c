//! The table of removals, Homeport's own: a job for each device that is being removed.

use homeport_item::KeyKind;
use homeport_item::schema::TableSchema;

pub const REMOVALS: &str = "homeport-removals";

pub const SYSTEM: &str = "system";
/// The id of the device within its system.
pub const DEVICE: &str = "device";
pub const BEGAN_AT_MS: &str = "began_at_ms";

#[must_use]
pub fn removals() -> TableSchema {
    TableSchema::new(REMOVALS, SYSTEM, KeyKind::S).with_sort(DEVICE, KeyKind::S)
}

/// All tables of the module.
#[must_use]
pub fn tables() -> Vec<TableSchema> {
    vec![removals()]
}
