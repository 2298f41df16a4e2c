//! Requests to a store. Expressions are trees; a backend that needs text prints them.

use homeport_item::Item;
use homeport_item::expression::{self, Condition, KeyCondition, Projection};

/// The attributes that a write returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReturnValues {
    #[default]
    None,
    /// The whole item before the write.
    AllOld,
    /// The whole item after the write; updates only.
    AllNew,
    /// The updated parts before the write; updates only.
    UpdatedOld,
    /// The updated parts after the write; updates only.
    UpdatedNew,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Get {
    pub table: String,
    pub key: Item,
    pub projection: Option<Projection>,
    /// Reads every write that completed before. The embedded store always does.
    pub consistent: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Put {
    pub table: String,
    pub item: Item,
    pub condition: Option<Condition>,
    pub returning: ReturnValues,
    /// Return the current item if the condition fails.
    pub old_on_failure: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    pub table: String,
    pub key: Item,
    pub update: expression::Update,
    pub condition: Option<Condition>,
    pub returning: ReturnValues,
    pub old_on_failure: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Delete {
    pub table: String,
    pub key: Item,
    pub condition: Option<Condition>,
    pub returning: ReturnValues,
    pub old_on_failure: bool,
}

/// A condition on an item that a transaction does not write.
#[derive(Debug, Clone, PartialEq)]
pub struct ConditionCheck {
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
    Check(ConditionCheck),
}

/// Actions that are applied together or not at all, each on a different item.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Transaction {
    pub actions: Vec<Action>,
    /// Makes repeated requests within ten minutes idempotent.
    pub token: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    pub table: String,
    pub index: Option<String>,
    pub key_condition: KeyCondition,
    pub filter: Option<Condition>,
    pub projection: Option<Projection>,
    /// Maximum number of items to read before filtering.
    pub limit: Option<usize>,
    /// The `next` key of the previous page.
    pub start: Option<Item>,
    pub descending: bool,
    pub consistent: bool,
    /// Return only the number of items.
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

/// One of the `total` segments of a parallel scan.
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
    /// A consistent read of the whole item.
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
            returning: ReturnValues::None,
            old_on_failure: false,
        }
    }
}

impl Update {
    pub fn new(table: impl Into<String>, key: Item, update: expression::Update) -> Self {
        Self {
            table: table.into(),
            key,
            update,
            condition: None,
            returning: ReturnValues::None,
            old_on_failure: false,
        }
    }
}

impl Delete {
    pub fn new(table: impl Into<String>, key: Item) -> Self {
        Self {
            table: table.into(),
            key,
            condition: None,
            returning: ReturnValues::None,
            old_on_failure: false,
        }
    }
}

impl ConditionCheck {
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

/// What the writes of one item have in common.
macro_rules! write_requests {
    ($($write:ident),*) => {$(
        impl $write {
            #[must_use]
            pub fn when(mut self, condition: Condition) -> Self {
                self.condition = Some(condition);
                self
            }

            #[must_use]
            pub fn returning(mut self, returning: ReturnValues) -> Self {
                self.returning = returning;
                self
            }
        }

        impl From<$write> for Action {
            fn from(write: $write) -> Self {
                Self::$write(write)
            }
        }
    )*};
}
write_requests!(Put, Update, Delete);

impl From<ConditionCheck> for Action {
    fn from(check: ConditionCheck) -> Self {
        Self::Check(check)
    }
}

impl From<WriteRequest> for Action {
    fn from(write: WriteRequest) -> Self {
        match write {
            WriteRequest::Put { table, item } => Put::new(table, item).into(),
            WriteRequest::Delete { table, key } => Delete::new(table, key).into(),
        }
    }
}

/// What the reads of pages have in common.
macro_rules! page_requests {
    ($($read:ident),*) => {$(
        impl $read {
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
            pub fn starting_after(mut self, start: Option<Item>) -> Self {
                self.start = start;
                self
            }
        }
    )*};
}
page_requests!(Query, Scan);

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
    /// The items of one partition that match `key_condition`, in ascending order.
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
    pub fn descending(mut self) -> Self {
        self.descending = true;
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
    pub fn segment(mut self, index: u32, total: u32) -> Self {
        self.segment = Some(Segment { index, total });
        self
    }
}
