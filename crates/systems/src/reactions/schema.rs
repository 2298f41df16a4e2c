//! The table of positions. It is Homeport's own: no design document freezes it.

use homeport_item::KeyKind;
use homeport_item::schema::TableSchema;

pub const REACTIONS: &str = "homeport-reactions";

pub const REACTION: &str = "reaction";
pub const POSITION: &str = "position";
pub const MOVED_AT: &str = "moved_at";

#[must_use]
pub fn positions() -> TableSchema {
    TableSchema::new(REACTIONS, REACTION, KeyKind::S)
}

/// All tables of the module.
#[must_use]
pub fn tables() -> Vec<TableSchema> {
    vec![positions()]
}
