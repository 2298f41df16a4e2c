//! Old items that cannot be migrated. They are stored until they are fixed or accepted, so that every run shows them.

use homeport_item::expression::Condition;
use homeport_item::{Item, Value};
use homeport_store::{Delete, Put, Scan, Store, StoreError, WriteError};

use super::progress::{CHARGERS, NAME, PROGRESS, Source};

const TABLE: &str = "table";
const KEY: &str = "key";
const REASON: &str = "reason";
const ACCEPTED: &str = "accepted";

/// An old item that cannot be migrated.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    pub source: Source,
    /// The key of the old item.
    pub key: Item,
    pub reason: String,
    /// Whether an operator has accepted that the item is not migrated.
    pub is_accepted: bool,
}

impl Refused {
    /// The readable key: the values of its attributes.
    #[must_use]
    pub fn key_text(&self) -> String {
        key_text(&self.key)
    }

    pub(super) fn id(&self) -> String {
        id(self.source, &self.key)
    }

    fn item_key(&self) -> Item {
        let id = format!("{CHARGERS}/refused/{}", self.id());
        Item::new().with(NAME, id)
    }

    fn from_item(item: &Item) -> Option<Self> {
        let text = |name: &str| item.get(name)?.as_str();
        Some(Self {
            source: Source::from_table(text(TABLE)?)?,
            key: Item::from(item.get(KEY)?.as_map()?.clone()),
            reason: text(REASON)?.to_owned(),
            is_accepted: item.get(ACCEPTED) == Some(&Value::Bool(true)),
        })
    }

    pub(super) fn put(&self) -> Put {
        let item = self
            .item_key()
            .with(TABLE, self.source.table())
            .with(KEY, Value::M(self.key.attributes().clone()))
            .with(REASON, self.reason.as_str())
            .with(ACCEPTED, self.is_accepted);
        Put::new(PROGRESS, item)
    }

    pub(super) async fn save(&self, store: &dyn Store) -> Result<(), StoreError> {
        ignore_conditions(store.put(self.put()).await.map(drop))
    }

    pub(super) async fn forget(&self, store: &dyn Store) -> Result<(), StoreError> {
        let delete = Delete::new(PROGRESS, self.item_key());
        ignore_conditions(store.delete(delete).await.map(drop))
    }
}

/// The identity of an old item.
pub(super) fn id(source: Source, key: &Item) -> String {
    format!("{}/{}", source.table(), key_text(key))
}

fn key_text(key: &Item) -> String {
    let parts = key.iter().map(|(_, value)| match value {
        Value::S(text) => text.clone(),
        value => crate::plain_json::value(value),
    });
    parts.collect::<Vec<_>>().join(" ")
}

/// All stored refusals.
pub(super) async fn load(store: &dyn Store) -> Result<Vec<Refused>, StoreError> {
    let mut scan = Scan::new(PROGRESS).filter(Condition::exists(TABLE));
    scan.consistent = true;
    let mut refused = Vec::new();
    loop {
        let page = store.scan(scan.clone()).await?;
        refused.extend(page.items.iter().filter_map(Refused::from_item));
        scan.start = page.next;
        if scan.start.is_none() {
            return Ok(refused);
        }
    }
}

fn ignore_conditions(written: Result<(), WriteError>) -> Result<(), StoreError> {
    match written {
        Ok(()) | Err(WriteError::ConditionFailed { .. }) => Ok(()),
        Err(WriteError::Store(error)) => Err(error),
    }
}
