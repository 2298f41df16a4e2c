//! What a store is asked. Expressions are trees; a backend prints them if it needs text.

use homeport_item::Item;
use homeport_item::expression::{self, Condition, KeyCondition, Projection};

/// Which attributes a write answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Returning {
    #[default]
    Nothing,
    /// The whole item as it was before.
    AllOld,
    /// The whole item as it is now; for updates only.
    AllNew,
    /// What the update touched, as it was before; for updates only.
    UpdatedOld,
    /// What the update touched, as it is now; for updates only.
    UpdatedNew,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Get {
    pub table: String,
    pub key: Item,
    pub projection: Option<Projection>,
    /// Sees every write answered before; the embedded store always does.
    pub consistent: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Put {
    pub table: String,
    pub item: Item,
    pub condition: Option<Condition>,
    pub returning: Returning,
    /// Answer with the item as it is when the condition fails.
    pub old_on_failure: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    pub table: String,
    pub key: Item,
    pub update: expression::Update,
    pub condition: Option<Condition>,
    pub returning: Returning,
    pub old_on_failure: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Delete {
    pub table: String,
    pub key: Item,
    pub condition: Option<Condition>,
    pub returning: Returning,
    pub old_on_failure: bool,
}

/// A condition on an item that a transaction does not write.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    pub table: String,
    pub key: Item,
    pub condition: Condition,
    pub old_on_failure: bool,
}

/// One action of a transaction.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    Put(Put),
    Update(Update),
    Delete(Delete),
    Check(Check),
}

/// Actions that happen together or not at all, each on another item.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Transaction {
    pub actions: Vec<Action>,
    /// Makes a repeat within ten minutes harmless.
    pub token: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    pub table: String,
    pub index: Option<String>,
    pub key_condition: KeyCondition,
    pub filter: Option<Condition>,
    pub projection: Option<Projection>,
    /// Items to look at, before the filter.
    pub limit: Option<usize>,
    /// Where the page before this one ended.
    pub start: Option<Item>,
    pub descending: bool,
    pub consistent: bool,
    /// Count the items and return none.
    pub count_only: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Scan {
    pub table: String,
    pub index: Option<String>,
    pub filter: Option<Condition>,
    pub projection: Option<Projection>,
    pub limit: Option<usize>,
    pub start: Option<Item>,
    pub segment: Option<Segment>,
    pub consistent: bool,
    pub count_only: bool,
}

/// One of `total` parts that a scan is split into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    pub index: u32,
    pub total: u32,
}

/// Keys to get from one table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableKeys {
    pub table: String,
    pub keys: Vec<Item>,
    pub projection: Option<Projection>,
    pub consistent: bool,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct BatchGet {
    pub tables: Vec<TableKeys>,
}

/// One write of a batch.
#[derive(Debug, Clone, PartialEq)]
pub enum WriteRequest {
    Put { table: String, item: Item },
    Delete { table: String, key: Item },
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct BatchWrite {
    pub writes: Vec<WriteRequest>,
}

impl Get {
    /// Reads the whole item, seeing all that was answered before.
    pub fn new(table: impl Into<String>, key: Item) -> Self {
        Self {
            table: table.into(),
            key,
            projection: None,
            consistent: true,
        }
    }
}

impl Put {
    pub fn new(table: impl Into<String>, item: Item) -> Self {
        Self {
            table: table.into(),
            item,
            condition: None,
            returning: Returning::Nothing,
            old_on_failure: false,
        }
    }

    #[must_use]
    pub fn when(mut self, condition: Condition) -> Self {
        self.condition = Some(condition);
        self
    }

    #[must_use]
    pub fn returning(mut self, returning: Returning) -> Self {
        self.returning = returning;
        self
    }
}

impl Update {
    pub fn new(table: impl Into<String>, key: Item, update: expression::Update) -> Self {
        Self {
            table: table.into(),
            key,
            update,
            condition: None,
            returning: Returning::Nothing,
            old_on_failure: false,
        }
    }

    #[must_use]
    pub fn when(mut self, condition: Condition) -> Self {
        self.condition = Some(condition);
        self
    }

    #[must_use]
    pub fn returning(mut self, returning: Returning) -> Self {
        self.returning = returning;
        self
    }
}

impl Delete {
    pub fn new(table: impl Into<String>, key: Item) -> Self {
        Self {
            table: table.into(),
            key,
            condition: None,
            returning: Returning::Nothing,
            old_on_failure: false,
        }
    }

    #[must_use]
    pub fn when(mut self, condition: Condition) -> Self {
        self.condition = Some(condition);
        self
    }

    #[must_use]
    pub fn returning(mut self, returning: Returning) -> Self {
        self.returning = returning;
        self
    }
}

impl Check {
    pub fn new(table: impl Into<String>, key: Item, condition: Condition) -> Self {
        Self {
            table: table.into(),
            key,
            condition,
            old_on_failure: false,
        }
    }
}

impl Action {
    #[must_use]
    pub fn table(&self) -> &str {
        match self {
            Self::Put(put) => &put.table,
            Self::Update(update) => &update.table,
            Self::Delete(delete) => &delete.table,
            Self::Check(check) => &check.table,
        }
    }
}

impl From<Put> for Action {
    fn from(put: Put) -> Self {
        Self::Put(put)
    }
}

impl From<Update> for Action {
    fn from(update: Update) -> Self {
        Self::Update(update)
    }
}

impl From<Delete> for Action {
    fn from(delete: Delete) -> Self {
        Self::Delete(delete)
    }
}

impl From<Check> for Action {
    fn from(check: Check) -> Self {
        Self::Check(check)
    }
}

impl Transaction {
    #[must_use]
    pub fn new(actions: Vec<Action>) -> Self {
        Self {
            actions,
            token: None,
        }
    }

    #[must_use]
    pub fn with_token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }
}

impl Query {
    /// All of one partition's items that fit `key_condition`, ascending.
    pub fn new(table: impl Into<String>, key_condition: KeyCondition) -> Self {
        Self {
            table: table.into(),
            index: None,
            key_condition,
            filter: None,
            projection: None,
            limit: None,
            start: None,
            descending: false,
            consistent: false,
            count_only: false,
        }
    }

    #[must_use]
    pub fn on_index(mut self, index: impl Into<String>) -> Self {
        self.index = Some(index.into());
        self
    }

    #[must_use]
    pub fn filter(mut self, filter: Condition) -> Self {
        self.filter = Some(filter);
        self
    }

    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    #[must_use]
    pub fn descending(mut self) -> Self {
        self.descending = true;
        self
    }

    #[must_use]
    pub fn starting_after(mut self, start: Option<Item>) -> Self {
        self.start = start;
        self
    }
}

impl Scan {
    pub fn new(table: impl Into<String>) -> Self {
        Self {
            table: table.into(),
            index: None,
            filter: None,
            projection: None,
            limit: None,
            start: None,
            segment: None,
            consistent: false,
            count_only: false,
        }
    }

    #[must_use]
    pub fn on_index(mut self, index: impl Into<String>) -> Self {
        self.index = Some(index.into());
        self
    }

    #[must_use]
    pub fn filter(mut self, filter: Condition) -> Self {
        self.filter = Some(filter);
        self
    }

    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    #[must_use]
    pub fn segment(mut self, index: u32, total: u32) -> Self {
        self.segment = Some(Segment { index, total });
        self
    }

    #[must_use]
    pub fn starting_after(mut self, start: Option<Item>) -> Self {
        self.start = start;
        self
    }
}
