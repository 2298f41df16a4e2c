//! The telemetry table. Its keys, indexes and attributes are frozen: they come from the design document and are
//! written nowhere else. Its name can be set.

use homeport_item::schema::{IndexSchema, KeyAttribute, TableSchema};
use homeport_item::{Item, KeyKind, Value};

use crate::plain_json;

/// The default name of the table.
pub const TABLE_DEFAULT: &str = "van-telemetry";
/// Finds messages of one type across all things.
pub const MESSAGE_TYPE_INDEX: &str = "MessageTypeIndex";
/// Finds messages of one severity across all things: those that have a severity.
pub const ALERT_SEVERITY_INDEX: &str = "AlertSeverityIndex";

pub const THING_NAME: &str = "thing_name";
/// Milliseconds since the epoch.
pub const TIMESTAMP: &str = "timestamp";
pub const MESSAGE_TYPE: &str = "message_type";
/// `critical`, `warning` or `info`.
pub const SEVERITY: &str = "severity";
/// Seconds since the epoch, as stores expect it.
pub const TTL: &str = "ttl";

/// The first level of the topics of things.
pub const TOPIC_ROOT: &str = "van";
/// The last level of the topic on which a thing receives commands.
pub const COMMANDS: &str = "commands";

#[must_use]
pub fn telemetry(name: &str) -> TableSchema {
    let over_time = |index: &str, attribute: &str| {
        let time = KeyAttribute::new(TIMESTAMP, KeyKind::N);
        IndexSchema::global(index, KeyAttribute::new(attribute, KeyKind::S), Some(time))
    };
    TableSchema::new(name, THING_NAME, KeyKind::S)
        .with_sort(TIMESTAMP, KeyKind::N)
        .with_index(over_time(MESSAGE_TYPE_INDEX, MESSAGE_TYPE))
        .with_index(over_time(ALERT_SEVERITY_INDEX, SEVERITY))
        .with_ttl(TTL)
}

/// Makes the severity that a device sent fit into its index: a store refuses items with another value there.
/// A number or a boolean becomes text; null and an empty text are no severity.
pub(crate) fn fit_severity(message: &mut Item) {
    let text = match message.get(SEVERITY) {
        Some(Value::Null) => None,
        Some(Value::S(text)) if text.is_empty() => None,
        Some(value @ (Value::N(_) | Value::Bool(_))) => Some(plain_json::value(value)),
        _ => return,
    };
    match text {
        Some(text) => message.insert(SEVERITY, text),
        None => message.remove(SEVERITY),
    };
}

/// All tables of the system.
#[must_use]
pub fn tables(name: &str) -> Vec<TableSchema> {
    vec![telemetry(name)]
}
