//! The tables of API keys. That of the keys is frozen, with three optional attributes of Homeport: the system that a key belongs
//! to, its scopes and its permissions.

use homeport_item::KeyKind;
use homeport_item::schema::{IndexSchema, KeyAttribute, TableSchema};

pub const API_KEYS: &str = "api_keys";
/// Finds a key by its hash.
pub const HASH_INDEX: &str = "api_key_hash_index";
/// Lists keys by creation time.
pub const CREATION_INDEX: &str = "gsi1";
/// The value of `gsi1pk` in every key.
pub const KEYS_PARTITION: &str = "api_keys";

pub const KEY_ID: &str = "key_id";
pub const API_KEY_HASH: &str = "api_key_hash";
pub const CREATED_AT: &str = "created_at";
pub const LAST_USED_AT: &str = "last_used_at";
pub const IS_ACTIVE: &str = "is_active";
pub const DESCRIPTION: &str = "description";
pub const GSI1PK: &str = "gsi1pk";
pub const GSI1SK: &str = "gsi1sk";

pub const SYSTEM: &str = "system";
pub const SCOPES: &str = "scopes";
pub const PERMISSIONS: &str = "permissions";

/// Homeport's own: shows whether a secret is still the one that was used before, without containing it.
pub const SECRET_CHECKS: &str = "homeport-secret-checks";
pub const SECRET: &str = "secret";
pub const CHECK: &str = "check";
/// The value of `secret` for the pepper.
pub const PEPPER: &str = "api-key-pepper";

/// The system whose keys can be allowed to send commands and to subscribe to all things.
pub(super) const TELEMETRY: &str = "telemetry";
/// The system whose keys can be allowed to send broadcasts.
pub(super) const PUSH: &str = "push";

#[must_use]
pub fn api_keys() -> TableSchema {
    let text = |name: &str| KeyAttribute::new(name, KeyKind::S);
    TableSchema::new(API_KEYS, KEY_ID, KeyKind::S)
        .with_index(IndexSchema::global(HASH_INDEX, text(API_KEY_HASH), None))
        .with_index(IndexSchema::global(
            CREATION_INDEX,
            text(GSI1PK),
            Some(text(GSI1SK)),
        ))
}

#[must_use]
pub fn secret_checks() -> TableSchema {
    TableSchema::new(SECRET_CHECKS, SECRET, KeyKind::S)
}

/// All tables of the module.
#[must_use]
pub fn tables() -> Vec<TableSchema> {
    vec![api_keys(), secret_checks()]
}
