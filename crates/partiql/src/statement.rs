//! Statements, with their parameters filled in and their conditions and updates as trees of the expression language.

use homeport_item::Item;
use homeport_item::expression::{self, Condition, Path};

#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    Select(Select),
    Insert(Insert),
    Update(Update),
    Delete(Delete),
    /// `EXISTS(SELECT …)`: a condition on an item, in a transaction that writes.
    Exists(Select),
}

/// The table that a statement is about, and the index that it names behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub table: String,
    pub index: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Select {
    pub target: Target,
    /// What to return of each item; everything when empty.
    pub projection: Vec<Path>,
    pub condition: Option<Condition>,
    pub order: Vec<OrderTerm>,
}

/// One attribute of an ORDER BY.
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
    pub returning: Option<Returning>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Delete {
    pub target: Target,
    pub condition: Option<Condition>,
    pub returning: Option<Returning>,
}

/// What a write returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Returning {
    AllOld,
    AllNew,
    ModifiedOld,
    ModifiedNew,
}

impl Returning {
    /// As the clause writes it.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::AllOld => "ALL OLD",
            Self::AllNew => "ALL NEW",
            Self::ModifiedOld => "MODIFIED OLD",
            Self::ModifiedNew => "MODIFIED NEW",
        }
    }
}

impl Statement {
    /// The table that the statement is about.
    #[must_use]
    pub fn table(&self) -> &str {
        match self {
            Self::Select(select) | Self::Exists(select) => &select.target.table,
            Self::Insert(insert) => &insert.table,
            Self::Update(update) => &update.target.table,
            Self::Delete(delete) => &delete.target.table,
        }
    }

    /// Whether the statement only reads.
    #[must_use]
    pub fn is_read(&self) -> bool {
        matches!(self, Self::Select(_))
    }

    /// What the statement returns of what it writes.
    #[must_use]
    pub fn returning(&self) -> Option<Returning> {
        match self {
            Self::Update(update) => update.returning,
            Self::Delete(delete) => delete.returning,
            Self::Select(_) | Self::Exists(_) | Self::Insert(_) => None,
        }
    }
}
