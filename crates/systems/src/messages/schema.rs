//! The tables of messages: sessions, their queues, and retained messages. They are Homeport's own: no
//! design document freezes them.

use homeport_item::KeyKind;
use homeport_item::schema::TableSchema;

pub const SESSIONS: &str = "homeport-mqtt-sessions";
pub const QUEUE: &str = "homeport-mqtt-queue";
pub const RETAINED: &str = "homeport-mqtt-retained";

/// When an item expires, in all three tables.
pub const EXPIRES_AT: &str = "expires_at";

/// Of sessions: the owner, `/`, and the client id.
pub const SESSION: &str = "session";
pub const CLIENT_ID: &str = "client_id";
/// Of sessions: the partition of its queue. Each new session gets another one.
/// Of queues: that partition.
pub const QUEUE_ID: &str = "queue_id";
pub const EXPIRY_SECS: &str = "expiry_secs";
pub const SUBSCRIPTIONS: &str = "subscriptions";
/// Of a subscription.
pub const FILTER: &str = "filter";
pub const NO_LOCAL: &str = "no_local";
pub const RETAIN_AS_PUBLISHED: &str = "retain_as_published";
pub const IDENTIFIER: &str = "identifier";
/// A pseudo session that counts the starts of the server.
pub const RUNS: &str = "#runs";
pub const RUN: &str = "run";

/// Of queues and retained messages: a later message has a higher number.
pub const SEQUENCE: &str = "sequence";
/// Of queues: the delivery to the subscriber.
pub const GRANTED_QOS: &str = "granted_qos";
pub const SENT_RETAIN: &str = "sent_retain";
pub const IDENTIFIERS: &str = "identifiers";

/// Of messages.
pub const TOPIC: &str = "topic";
pub const PAYLOAD: &str = "payload";
pub const QOS: &str = "qos";
pub const RETAIN: &str = "retain";
pub const PUBLISHER_CLIENT_ID: &str = "publisher_client_id";
pub const PRINCIPAL: &str = "principal";
pub const RECEIVED_AT_MS: &str = "received_at_ms";
pub const CONTENT_TYPE: &str = "content_type";
pub const RESPONSE_TOPIC: &str = "response_topic";
pub const CORRELATION_DATA: &str = "correlation_data";
pub const PAYLOAD_IS_TEXT: &str = "payload_is_text";
pub const EXPIRES_AFTER_SECS: &str = "expires_after_secs";
pub const USER_PROPERTIES: &str = "user_properties";
pub const HOPS: &str = "hops";

#[must_use]
pub fn sessions() -> TableSchema {
    TableSchema::new(SESSIONS, SESSION, KeyKind::S).with_ttl(EXPIRES_AT)
}

#[must_use]
pub fn queue() -> TableSchema {
    TableSchema::new(QUEUE, QUEUE_ID, KeyKind::S)
        .with_sort(SEQUENCE, KeyKind::N)
        .with_ttl(EXPIRES_AT)
}

#[must_use]
pub fn retained() -> TableSchema {
    TableSchema::new(RETAINED, TOPIC, KeyKind::S).with_ttl(EXPIRES_AT)
}

/// All tables of the module.
#[must_use]
pub fn tables() -> Vec<TableSchema> {
    vec![sessions(), queue(), retained()]
}
