//! API keys: the credentials of devices. A raw key is shown once and never stored. Only its hash is stored,
//! made with a pepper that only the server knows.

mod cache;
mod id;
mod key;
mod pepper_check;
mod reach;
pub mod schema;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use homeport_item::expression::{Condition, KeyCondition, Path, Projection, Update};
use homeport_item::{Item, Value};
use homeport_store::{
    Clock, Get, Put, Query, ReturnValues, Store, StoreError, Update as UpdateRequest, WriteError,
};

use tokio::sync::broadcast;

use crate::cursor::{Cursor, CursorError};
use crate::fetch::fetch;
use crate::fleet::SYSTEMS;
use crate::pages::{self, Page};
use crate::time::{EpochMillis, EpochSeconds, UtcSecond};

use cache::Cache;
pub use id::{KeyId, KeyIdError};
pub use key::{Pepper, RawKey};
pub use reach::KeyPermission;
pub(crate) use reach::check_scope;

/// Keys of one page.
pub const PAGE_MAX: usize = 1000;
/// Longest description, in characters.
pub const DESCRIPTION_CHARS_MAX: usize = 256;
/// Scopes of one key, and the longest scope.
pub const SCOPES_MAX: usize = 100;
pub const SCOPE_LEN_MAX: usize = 256;
/// The shortest interval between two writes of the time of last use.
pub const LAST_USED_EVERY_SECS: i64 = 5 * 60;
/// How long another process may accept a key that this process revoked.
pub const CACHE_SECS: i64 = 30;
/// How long a process rejects an unknown key without reading the store. A key that is tried before another
/// process creates it may be rejected for this long.
pub const UNKNOWN_KEY_CACHE_SECS: i64 = 5;

/// Revocations that a listener may lag behind. A listener that lags further reads the store.
const REVOCATIONS_MAX: usize = 64;
const LIST: &str = "api-keys";
/// The system of keys that name none: sensors were the first to have keys.
const FIRST_SYSTEM: &str = "sensors";

/// A stored key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    pub key_id: KeyId,
    pub created_at: UtcSecond,
    pub last_used_at: Option<UtcSecond>,
    pub is_active: bool,
    pub description: Option<String>,
    /// The system whose devices may use it.
    pub system: String,
    /// The subjects that it may read and write; empty for all devices of its system.
    pub scopes: BTreeSet<String>,
    pub permissions: BTreeSet<KeyPermission>,
}

/// A key to create.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewApiKey {
    pub description: Option<String>,
    pub system: Option<String>,
    pub scopes: BTreeSet<String>,
    /// Whether the key is for the whole system; otherwise it needs scopes.
    pub all: bool,
    pub permissions: BTreeSet<KeyPermission>,
}

/// A revoked key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revoked {
    /// The key after the revocation.
    pub key: ApiKey,
    /// Whether it was active before.
    pub was_active: bool,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ApiKeyError {
    #[error("{0}")]
    Invalid(&'static str),
    #[error("invalid scope {scope}: expected {expected}")]
    InvalidScope {
        scope: String,
        expected: &'static str,
    },
    #[error("there is no key {0}")]
    Missing(KeyId),
    #[error(transparent)]
    Cursor(#[from] CursorError),
    #[error("the pepper is not the one that hashed the stored API keys")]
    WrongPepper,
    #[error("a stored api_keys item is malformed: {0}")]
    Malformed(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The keys of all systems, on a store.
pub struct ApiKeys {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    pepper: Pepper,
    cache: Cache,
    /// Whether the store has the check value of the pepper.
    is_pepper_noted: AtomicBool,
    revocations: broadcast::Sender<KeyId>,
}

impl NewApiKey {
    /// A key of all devices of a system.
    #[must_use]
    pub fn for_all_of(system: &str) -> Self {
        Self {
            system: Some(system.to_owned()),
            all: true,
            ..Self::default()
        }
    }
}

impl ApiKey {
    #[must_use]
    pub fn has(&self, permission: KeyPermission) -> bool {
        self.permissions.contains(&permission)
    }

    /// Whether the key belongs to `system` and may write `subject` in it.
    #[must_use]
    pub fn allows(&self, system: &str, subject: &str) -> bool {
        self.system == system && (self.scopes.is_empty() || self.scopes.contains(subject))
    }

    fn to_item(&self, hash: &str) -> Item {
        let created_at = self.created_at.to_string();
        let mut item = Item::new()
            .with(schema::KEY_ID, self.key_id.to_string())
            .with(schema::API_KEY_HASH, hash)
            .with(schema::CREATED_AT, created_at.as_str())
            .with(schema::IS_ACTIVE, self.is_active)
            .with(schema::GSI1PK, schema::KEYS_PARTITION)
            .with(schema::GSI1SK, created_at);
        if let Some(description) = &self.description {
            item.insert(schema::DESCRIPTION, description.as_str());
        }
        if self.system != FIRST_SYSTEM {
            item.insert(schema::SYSTEM, self.system.as_str());
        }
        if let Ok(scopes) = Value::string_set(self.scopes.iter().cloned()) {
            item.insert(schema::SCOPES, scopes);
        }
        let permissions = self.permissions.iter().map(ToString::to_string);
        if let Ok(permissions) = Value::string_set(permissions) {
            item.insert(schema::PERMISSIONS, permissions);
        }
        item
    }

    fn from_item(item: &Item) -> Result<Self, ApiKeyError> {
        let text = |name: &str| item.get(name).and_then(Value::as_str);
        let malformed = |name: &str| ApiKeyError::Malformed(format!("{name} is missing or wrong"));
        let required = |name: &str| text(name).ok_or_else(|| malformed(name));
        Ok(Self {
            key_id: required(schema::KEY_ID)?
                .parse()
                .ok()
                // Revocation finds the key by this text, so it must be the stored spelling.
                .filter(|id: &KeyId| Some(id.to_string().as_str()) == text(schema::KEY_ID))
                .ok_or_else(|| malformed(schema::KEY_ID))?,
            created_at: required(schema::CREATED_AT)?
                .parse()
                .map_err(|_| malformed(schema::CREATED_AT))?,
            last_used_at: text(schema::LAST_USED_AT).and_then(|time| time.parse().ok()),
            is_active: item
                .get(schema::IS_ACTIVE)
                .and_then(Value::as_bool)
                .ok_or_else(|| malformed(schema::IS_ACTIVE))?,
            description: text(schema::DESCRIPTION).map(str::to_owned),
            system: text(schema::SYSTEM).unwrap_or(FIRST_SYSTEM).to_owned(),
            scopes: match item.get(schema::SCOPES) {
                Some(Value::Ss(scopes)) => scopes.iter().cloned().collect(),
                // A scope that cannot be read must not grant everything.
                Some(_) => return Err(malformed(schema::SCOPES)),
                None => BTreeSet::new(),
            },
            permissions: match item.get(schema::PERMISSIONS) {
                // A permission of a later version grants nothing here.
                Some(Value::Ss(permissions)) => permissions
                    .iter()
                    .filter_map(|permission| permission.parse().ok())
                    .collect(),
                _ => BTreeSet::new(),
            },
        })
    }
}

impl ApiKeys {
    #[must_use]
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, pepper: Pepper) -> Self {
        Self {
            store,
            clock,
            pepper,
            cache: Cache::default(),
            is_pepper_noted: AtomicBool::new(false),
            revocations: broadcast::Sender::new(REVOCATIONS_MAX),
        }
    }

    /// The number of verified keys in memory.
    #[must_use]
    pub fn cached(&self) -> usize {
        self.cache.len()
    }

    /// Creates a key. Only this answer contains the raw key.
    ///
    /// # Errors
    /// When a value is out of bounds or the store fails.
    pub async fn create(&self, new: NewApiKey) -> Result<(ApiKey, RawKey), ApiKeyError> {
        check(&new)?;
        self.note_pepper_of_first_key().await?;
        let raw = RawKey::random();
        let key = ApiKey {
            key_id: KeyId::random(),
            created_at: UtcSecond::new(self.now()),
            last_used_at: None,
            is_active: true,
            description: new.description,
            system: new.system.unwrap_or_else(|| FIRST_SYSTEM.to_owned()),
            scopes: new.scopes,
            permissions: new.permissions,
        };
        let hash = self.pepper.hash(&raw);
        let put = Put::new(schema::API_KEYS, key.to_item(&hash))
            .when(Condition::not_exists(schema::KEY_ID));
        match self.store.put(put).await {
            Ok(_) => {
                // This process accepts the key at once, even while the index that finds it lags.
                self.cache.put(hash, key.clone(), self.now());
                Ok((key, raw))
            }
            // Two random ids were equal, or the answer to a retry was lost. Retrying helps.
            Err(WriteError::ConditionFailed { .. }) => Err(StoreError::Throttled.into()),
            Err(WriteError::Store(error)) => Err(error.into()),
        }
    }

    /// Lists keys, newest first.
    ///
    /// # Errors
    /// When the cursor belongs to another list or the store fails.
    pub async fn list(
        &self,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Page<ApiKey>, ApiKeyError> {
        let condition = KeyCondition::new(schema::GSI1PK, schema::KEYS_PARTITION);
        let start = cursor.map(|cursor| cursor.start_of(LIST)).transpose()?;
        let query = Query::new(schema::API_KEYS, condition)
            .on_index(schema::CREATION_INDEX)
            .descending()
            .starting_after(start);
        let limit = limit.clamp(1, PAGE_MAX);
        let schema = schema::api_keys();
        let page = pages::read_page(&*self.store, &schema, query, LIST, limit).await?;
        Ok(page.readable(&schema, ApiKey::from_item))
    }

    /// Revokes a key: it stays in the table but is no longer accepted.
    ///
    /// # Errors
    /// When there is no such key or the store fails.
    pub async fn revoke(&self, key_id: KeyId) -> Result<Revoked, ApiKeyError> {
        let key = Item::new().with(schema::KEY_ID, key_id.to_string());
        let request = UpdateRequest::new(
            schema::API_KEYS,
            key,
            Update::new().set(schema::IS_ACTIVE, false),
        )
        .when(Condition::exists(schema::KEY_ID))
        .returning(ReturnValues::AllOld);
        let before = match self.store.update(request).await {
            Ok(Some(item)) => item,
            Ok(None) | Err(WriteError::ConditionFailed { .. }) => {
                return Err(ApiKeyError::Missing(key_id));
            }
            Err(WriteError::Store(error)) => return Err(error.into()),
        };
        // IMPORTANT: only after the store has the revocation. Otherwise a verification under way could restore
        // the old state for longer than a cached key lives.
        self.cache.revoke(key_id, self.now());
        // An error means that there are no listeners.
        let _ = self.revocations.send(key_id);
        let before = ApiKey::from_item(&before)?;
        Ok(Revoked {
            was_active: before.is_active,
            key: ApiKey {
                is_active: false,
                ..before
            },
        })
    }

    /// The given keys that are not active according to the newest state in the store.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn inactive(
        &self,
        key_ids: &BTreeSet<KeyId>,
    ) -> Result<BTreeSet<KeyId>, ApiKeyError> {
        let keys = key_ids
            .iter()
            .map(|id| Item::new().with(schema::KEY_ID, id.to_string()));
        let projection = Projection::new([schema::KEY_ID, schema::IS_ACTIVE]);
        let items = fetch(&*self.store, schema::API_KEYS, keys, Some(projection)).await?;
        let mut inactive = key_ids.clone();
        for item in &items {
            let is_active = item.get(schema::IS_ACTIVE).and_then(Value::as_bool);
            let key_id = item.get(schema::KEY_ID).and_then(Value::as_str);
            if let (Some(true), Some(Ok(key_id))) = (is_active, key_id.map(str::parse)) {
                inactive.remove(&key_id);
            }
        }
        Ok(inactive)
    }

    /// Receives every key that this process revokes from now on.
    #[must_use]
    pub fn revocations(&self) -> broadcast::Receiver<KeyId> {
        self.revocations.subscribe()
    }

    /// The active key that matches a text from a device; `None` when the key is unknown or revoked.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn verify(&self, text: &str) -> Result<Option<Arc<ApiKey>>, ApiKeyError> {
        let Ok(raw) = text.parse::<RawKey>() else {
            return Ok(None);
        };
        let now = self.now();
        let hash = self.pepper.hash(&raw);
        let key = match self.cache.get(&hash, now) {
            Some(key) => key,
            None => {
                if self.cache.is_unknown(&hash, now) {
                    return Ok(None);
                }
                let Some(key) = self.look_up(&hash).await? else {
                    self.cache.put_unknown(hash, now);
                    return Ok(None);
                };
                self.note_proven_pepper().await;
                match self.cache.put(hash, key, now) {
                    Some(key) => key,
                    None => return Ok(None),
                }
            }
        };
        self.note_use(&key, now).await;
        Ok(Some(key))
    }

    /// Whether verifying a text reads the store for a key that this process has not seen. Keys that were active lately
    /// are not new.
    #[must_use]
    pub fn is_new(&self, text: &str) -> bool {
        let Ok(raw) = text.parse::<RawKey>() else {
            return false;
        };
        let hash = self.pepper.hash(&raw);
        !self.cache.contains(&hash) && !self.cache.is_unknown(&hash, self.now())
    }

    async fn look_up(&self, hash: &str) -> Result<Option<ApiKey>, ApiKeyError> {
        let condition = KeyCondition::new(schema::API_KEY_HASH, hash);
        let query = Query::new(schema::API_KEYS, condition).on_index(schema::HASH_INDEX);
        let page = self.store.query(query).await?;
        let Some(key_id) = page.items.first().and_then(|it| it.get(schema::KEY_ID)) else {
            return Ok(None);
        };
        // An index may lag behind, and a revoked key must not be cached because of that.
        let key = Item::new().with(schema::KEY_ID, key_id.clone());
        let item = self.store.get(Get::new(schema::API_KEYS, key)).await?;
        let Some(item) = item.filter(|item| has_hash(item, hash)) else {
            return Ok(None);
        };
        let key = ApiKey::from_item(&item)?;
        Ok(key.is_active.then_some(key))
    }

    /// Writes the time of last use at intervals. It does not matter for security, so a failure is only logged.
    async fn note_use(&self, key: &ApiKey, now: EpochSeconds) {
        if !self.cache.is_use_due(key.key_id, key.last_used_at, now) {
            return;
        }
        let used_at = UtcSecond::new(now).to_string();
        let last_used = Path::new(schema::LAST_USED_AT);
        let due_before = UtcSecond::new(now.plus_secs(-LAST_USED_EVERY_SECS)).to_string();
        let is_due = Condition::exists(schema::KEY_ID)
            .and(Condition::not_exists(schema::LAST_USED_AT).or(last_used.at_most(due_before)));
        let item_key = Item::new().with(schema::KEY_ID, key.key_id.to_string());
        let update = Update::new().set(schema::LAST_USED_AT, used_at);
        let request = UpdateRequest::new(schema::API_KEYS, item_key, update).when(is_due);
        match self.store.update(request).await {
            Ok(_) | Err(WriteError::ConditionFailed { .. }) => {}
            Err(error) => {
                tracing::warn!(key_id = %key.key_id, %error, "writing the last use of a key failed");
            }
        }
    }

    fn now(&self) -> EpochSeconds {
        EpochMillis(self.clock.now_ms()).seconds()
    }
}

fn has_hash(item: &Item, hash: &str) -> bool {
    let stored = item.get(schema::API_KEY_HASH).and_then(Value::as_str);
    stored.is_some_and(|stored| key::hashes_equal(stored, hash))
}

fn check(new: &NewApiKey) -> Result<(), ApiKeyError> {
    let is_text = |text: &str, max: usize| {
        (1..=max).contains(&text.chars().count()) && !text.chars().any(char::is_control)
    };
    if let Some(description) = &new.description
        && !is_text(description, DESCRIPTION_CHARS_MAX)
    {
        return Err(ApiKeyError::Invalid(
            "description must be 1 to 256 printable characters",
        ));
    }
    if let Some(system) = &new.system
        && !SYSTEMS.iter().any(|known| known.name.as_str() == system)
    {
        return Err(ApiKeyError::Invalid(
            "system must be one of sensors, chargers, push, telemetry and records",
        ));
    }
    let system = new.system.as_deref().unwrap_or(FIRST_SYSTEM);
    reach::check(system, new)
}

impl std::fmt::Debug for ApiKeys {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ApiKeys").finish_non_exhaustive()
    }
}
