//! Parsed statements, with their parameters filled in and their conditions and updates as trees of
//! the expression language.

use homeport_item::Item;
use homeport_item::expression::{self, Condition, Path};

#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    Select(Select),
    Insert(Insert),
    Update(Update),
    Delete(Delete),
    /// `EXISTS(SELECT …)`: a condition check in a write transaction.
    Exists(Select),
}

/// The table of a statement, and its optional index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub table: String,
    pub index: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Select {
    pub target: Target,
    /// The parts of each item to return; all if empty.
    pub projection: Vec<Path>,
    pub condition: Option<Condition>,
    pub order: Vec<OrderTerm>,
}

/// One attribute in ORDER BY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderTerm {
    pub name: String,
    pub descending: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Insert {
    pub table: String,
    pub item: Item,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    pub target: Target,
    pub update: expression::Update,
    pub condition: Option<Condition>,
    pub returning: Option<ReturnValues>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Delete {
    pub target: Target,
    pub condition: Option<Condition>,
    pub returning: Option<ReturnValues>,
}

/// The return values of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReturnValues {
    AllOld,
    AllNew,
    ModifiedOld,
    ModifiedNew,
}

impl ReturnValues {
    /// The text of the clause.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AllOld => "ALL OLD",
            Self::AllNew => "ALL NEW",
            Self::ModifiedOld => "MODIFIED OLD",
            Self::ModifiedNew => "MODIFIED NEW",
        }
    }
}

impl Statement {
    /// The table of the statement.
    #[must_use]
    pub fn table(&self) -> &str {
        match self {
            Self::Select(select) | Self::Exists(select) => &select.target.table,
            Self::Insert(insert) => &insert.table,
            Self::Update(update) => &update.target.table,
            Self::Delete(delete) => &delete.target.table,
        }
    }

    /// Whether the statement is read-only.
    #[must_use]
    pub fn is_read(&self) -> bool {
        matches!(self, Self::Select(_))
    }

    /// The return values that the statement requests.
    #[must_use]
    pub fn returning(&self) -> Option<ReturnValues> {
        match self {
            Self::Update(update) => update.returning,
            Self::Delete(delete) => delete.returning,
            Self::Select(_) | Self::Exists(_) | Self::Insert(_) => None,
        }
    }
}
