//! The tables of people, Homeport's own: people, and the credentials that they were given (sessions and tokens).

use homeport_item::KeyKind;
use homeport_item::schema::TableSchema;

pub const PEOPLE: &str = "homeport-people";
/// Which kind of item it is: one of the partitions below.
pub const PARTITION: &str = "partition";
/// The name of the person, or of the item.
pub const NAME: &str = "name";
/// Increases with every change of the item; writes are conditional on it.
pub const VERSION: &str = "version";
/// The rest of the item, as JSON.
pub const BODY: &str = "body";

pub(super) const PERSON_PARTITION: &str = "person";
/// One item, whose version increases whenever people are added or removed, or what they may do changes.
pub(super) const DIRECTORY_PARTITION: &str = "directory";
/// One item, the link that sets up the first administrator.
pub(super) const SETUP_PARTITION: &str = "setup";

pub const CREDENTIALS: &str = "homeport-credentials";
/// The id of the person; zeros for sessions of the admin token.
pub const PERSON_ID: &str = "person_id";
pub const CREDENTIAL_ID: &str = "credential_id";
/// The SHA-256 digest of the secret part of the token, in hexadecimal.
pub const DIGEST: &str = "digest";
pub const LAST_USED_AT_MS: &str = "last_used_at_ms";
/// When the table deletes the item, in seconds.
pub const EXPIRES_AT: &str = "expires_at";

#[must_use]
pub fn people() -> TableSchema {
    TableSchema::new(PEOPLE, PARTITION, KeyKind::S).with_sort(NAME, KeyKind::S)
}

#[must_use]
pub fn credentials() -> TableSchema {
    TableSchema::new(CREDENTIALS, PERSON_ID, KeyKind::S)
        .with_sort(CREDENTIAL_ID, KeyKind::S)
        .with_ttl(EXPIRES_AT)
}

/// All tables of the module.
#[must_use]
pub fn tables() -> Vec<TableSchema> {
    vec![people(), credentials()]
}
