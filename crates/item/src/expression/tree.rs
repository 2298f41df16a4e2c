//! The tree types of all kinds of expressions.

use super::path::Path;
use crate::value::{Value, ValueKind};

/// A condition or filter, which is true or false for an item.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    Compare(Operand, Comparator, Operand),
    /// Operand, lower bound, upper bound. Both bounds are inclusive.
    Between(Operand, Operand, Operand),
    In(Operand, Vec<Operand>),
    Exists(Path),
    NotExists(Path),
    IsType(Path, ValueKind),
    /// Whether the first operand starts with the second.
    BeginsWith(Operand, Operand),
    /// Whether the first operand, a string, set or list, contains the second.
    Contains(Operand, Operand),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
    Not(Box<Condition>),
}

/// An operand of a condition.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    Path(Path),
    Value(Value),
    /// `size(path)`
    Size(Path),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The condition on the keys of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyCondition {
    pub partition_name: String,
    pub partition: Value,
    /// Equality conditions on further attributes of an index key: the rest of its partition key,
    /// and the sort key attributes before the one in `sort`.
    pub rest: Vec<(String, Value)>,
    pub sort: Option<(String, SortCondition)>,
}

/// The conditions of a query that are not yet bound to a key schema.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyConditions(pub(super) Vec<(String, SortCondition)>);

/// The condition of a query on the sort key.
#[derive(Debug, Clone, PartialEq)]
pub enum SortCondition {
    Equal(Value),
    Less(Value),
    LessOrEqual(Value),
    Greater(Value),
    GreaterOrEqual(Value),
    /// Both bounds are inclusive.
    Between(Value, Value),
    BeginsWith(Value),
}

/// Changes to one item. No path occurs twice or overlaps another.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Update {
    pub set: Vec<(Path, UpdateOperand)>,
    pub remove: Vec<Path>,
    /// Adds to a number, or adds members to a set.
    pub add: Vec<(Path, Value)>,
    /// Removes members from a set.
    pub delete: Vec<(Path, Value)>,
}

/// The right-hand side of a SET assignment.
#[derive(Debug, Clone, PartialEq)]
pub enum UpdateOperand {
    Path(Path),
    Value(Value),
    IfNotExists(Path, Box<UpdateOperand>),
    ListAppend(Box<UpdateOperand>, Box<UpdateOperand>),
    Plus(Box<UpdateOperand>, Box<UpdateOperand>),
    Minus(Box<UpdateOperand>, Box<UpdateOperand>),
}

/// The parts of an item to return.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Projection {
    pub paths: Vec<Path>,
}

impl Condition {
    /// The paths that the condition reads.
    #[must_use]
    pub fn paths(&self) -> Vec<&Path> {
        let mut paths = Vec::new();
        self.collect_paths(&mut paths);
        paths
    }

    fn collect_paths<'a>(&'a self, paths: &mut Vec<&'a Path>) {
        match self {
            Self::Compare(one, _, two) | Self::BeginsWith(one, two) | Self::Contains(one, two) => {
                paths.extend([one, two].into_iter().filter_map(Operand::path));
            }
            Self::Between(one, two, three) => {
                paths.extend([one, two, three].into_iter().filter_map(Operand::path));
            }
            Self::In(one, others) => {
                let operands = std::iter::once(one).chain(others);
                paths.extend(operands.filter_map(Operand::path));
            }
            Self::Exists(path) | Self::NotExists(path) | Self::IsType(path, _) => paths.push(path),
            Self::And(one, two) | Self::Or(one, two) => {
                one.collect_paths(paths);
                two.collect_paths(paths);
            }
            Self::Not(inner) => inner.collect_paths(paths),
        }
    }
}

impl Operand {
    /// The path that the operand reads, if any.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) | Self::Size(path) => Some(path),
            Self::Value(_) => None,
        }
    }
}
