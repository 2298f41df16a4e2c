//! The telemetry table, frozen: keys, index and attributes are those of the design document and are
//! written nowhere else. Its name can be set.

use homeport_item::KeyKind;
use homeport_item::schema::{IndexSchema, KeyAttribute, TableSchema};

/// The table's name unless another one is set.
pub const TABLE_DEFAULT: &str = "van-telemetry";
/// Finds messages of one type across all things.
pub const MESSAGE_TYPE_INDEX: &str = "MessageTypeIndex";

pub const THING_NAME: &str = "thing_name";
/// Milliseconds since the epoch.
pub const TIMESTAMP: &str = "timestamp";
pub const MESSAGE_TYPE: &str = "message_type";
/// Seconds since the epoch, as stores read it.
pub const TTL: &str = "ttl";

/// What topics of things begin with.
pub const TOPIC_ROOT: &str = "van";
/// The last level of the topic on which a thing gets commands.
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
