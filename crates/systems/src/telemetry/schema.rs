//! The telemetry table. Its keys, index and attributes are frozen: they come from the design document and are
//! written nowhere else. Its name can be set.

use homeport_item::KeyKind;
use homeport_item::schema::{IndexSchema, KeyAttribute, TableSchema};

/// The default name of the table.
pub const TABLE_DEFAULT: &str = "van-telemetry";
/// Finds messages of one type across all things.
pub const MESSAGE_TYPE_INDEX: &str = "MessageTypeIndex";

pub const THING_NAME: &str = "thing_name";
/// Milliseconds since the epoch.
pub const TIMESTAMP: &str = "timestamp";
pub const MESSAGE_TYPE: &str = "message_type";
/// Seconds since the epoch, as stores expect it.
pub const TTL: &str = "ttl";

/// The first level of the topics of things.
pub const TOPIC_ROOT: &str = "van";
/// The last level of the topic on which a thing receives commands.
pub const COMMANDS: &str = "commands";

#[must_use]
pub fn telemetry(name: &str) -> TableSchema {
    let by_type = IndexSchema::global(
        MESSAGE_TYPE_INDEX,
        KeyAttribute::new(MESSAGE_TYPE, KeyKind::S),
        Some(KeyAttribute::new(TIMESTAMP, KeyKind::N)),
    );
    TableSchema::new(name, THING_NAME, KeyKind::S)
        .with_sort(TIMESTAMP, KeyKind::N)
        .with_index(by_type)
        .with_ttl(TTL)
}

/// All tables of the system.
#[must_use]
pub fn tables(name: &str) -> Vec<TableSchema> {
    vec![telemetry(name)]
}
