//! Builders for trees.
//!
//! A bare string is an attribute name on the left (`Condition::exists("pk")`) and a value on the
//! right (`.equals("x")`). Write a path on the right as a [`Path`].

use std::ops::Not;

use super::path::Path;
use super::tree::{
    Comparator, Condition, KeyCondition, Operand, Projection, SortCondition, Update, UpdateOperand,
};
use crate::value::{Value, ValueKind};

impl Condition {
    #[must_use]
    pub fn exists(path: impl Into<Path>) -> Self {
        Self::Exists(path.into())
    }

    #[must_use]
    pub fn not_exists(path: impl Into<Path>) -> Self {
        Self::NotExists(path.into())
    }

    #[must_use]
    pub fn is_type(path: impl Into<Path>, kind: ValueKind) -> Self {
        Self::IsType(path.into(), kind)
    }

    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::And(Box::new(self), Box::new(other))
    }

    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::Or(Box::new(self), Box::new(other))
    }

    /// Joins the conditions with AND; `None` if there are no conditions.
    #[must_use]
    pub fn all(conditions: Vec<Self>) -> Option<Self> {
        join(conditions, Self::and)
    }

    /// Splits the condition at its top-level ANDs.
    #[must_use]
    pub fn conjuncts(self) -> Vec<Self> {
        let mut conjuncts = Vec::new();
        let mut rest = vec![self];
        while let Some(condition) = rest.pop() {
            match condition {
                Self::And(left, right) => rest.extend([*right, *left]),
                other => conjuncts.push(other),
            }
        }
        conjuncts
    }

    /// Joins the conditions with OR; `None` if there are no conditions.
    #[must_use]
    pub fn any(conditions: Vec<Self>) -> Option<Self> {
        join(conditions, Self::or)
    }
}

/// Joins neighbours until one condition is left. That keeps the tree as shallow as possible, so
/// recursion over it stays bounded for long lists.
fn join(
    mut conditions: Vec<Condition>,
    connect: fn(Condition, Condition) -> Condition,
) -> Option<Condition> {
    while conditions.len() > 1 {
        let mut joined = Vec::with_capacity(conditions.len().div_ceil(2));
        let mut rest = conditions.into_iter();
        while let Some(left) = rest.next() {
            joined.push(match rest.next() {
                Some(right) => connect(left, right),
                None => left,
            });
        }
        conditions = joined;
    }
    conditions.pop()
}

impl Not for Condition {
    type Output = Self;

    fn not(self) -> Self {
        Self::Not(Box::new(self))
    }
}

/// Comparison methods for operands and for paths.
macro_rules! comparisons {
    ($operand:ty) => {
        impl $operand {
            #[must_use]
            pub fn equals(self, other: impl Into<Operand>) -> Condition {
                Condition::Compare(self.into(), Comparator::Equal, other.into())
            }

            #[must_use]
            pub fn not_equals(self, other: impl Into<Operand>) -> Condition {
                Condition::Compare(self.into(), Comparator::NotEqual, other.into())
            }

            #[must_use]
            pub fn less_than(self, other: impl Into<Operand>) -> Condition {
                Condition::Compare(self.into(), Comparator::Less, other.into())
            }

            #[must_use]
            pub fn at_most(self, other: impl Into<Operand>) -> Condition {
                Condition::Compare(self.into(), Comparator::LessOrEqual, other.into())
            }

            #[must_use]
            pub fn greater_than(self, other: impl Into<Operand>) -> Condition {
                Condition::Compare(self.into(), Comparator::Greater, other.into())
            }

            #[must_use]
            pub fn at_least(self, other: impl Into<Operand>) -> Condition {
                Condition::Compare(self.into(), Comparator::GreaterOrEqual, other.into())
            }

            /// Both bounds are inclusive.
            #[must_use]
            pub fn between(
                self,
                lower: impl Into<Operand>,
                upper: impl Into<Operand>,
            ) -> Condition {
                Condition::Between(self.into(), lower.into(), upper.into())
            }

            #[must_use]
            pub fn is_in<O: Into<Operand>>(
                self,
                choices: impl IntoIterator<Item = O>,
            ) -> Condition {
                Condition::In(self.into(), choices.into_iter().map(Into::into).collect())
            }

            #[must_use]
            pub fn begins_with(self, prefix: impl Into<Operand>) -> Condition {
                Condition::BeginsWith(self.into(), prefix.into())
            }

            #[must_use]
            pub fn contains(self, part: impl Into<Operand>) -> Condition {
                Condition::Contains(self.into(), part.into())
            }
        }
    };
}
comparisons!(Operand);
comparisons!(Path);

impl Path {
    /// The path as the operand `size(path)`.
    #[must_use]
    pub fn size(self) -> Operand {
        Operand::Size(self)
    }
}

impl From<Path> for Operand {
    fn from(path: Path) -> Self {
        Self::Path(path)
    }
}

impl<V: Into<Value>> From<V> for Operand {
    fn from(value: V) -> Self {
        Self::Value(value.into())
    }
}

impl Update {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn set(mut self, path: impl Into<Path>, operand: impl Into<UpdateOperand>) -> Self {
        self.set.push((path.into(), operand.into()));
        self
    }

    #[must_use]
    pub fn remove(mut self, path: impl Into<Path>) -> Self {
        self.remove.push(path.into());
        self
    }

    /// Adds to a number, or adds members to a set.
    #[must_use]
    pub fn add(mut self, path: impl Into<Path>, value: impl Into<Value>) -> Self {
        self.add.push((path.into(), value.into()));
        self
    }

    /// Removes members from a set.
    #[must_use]
    pub fn delete(mut self, path: impl Into<Path>, members: impl Into<Value>) -> Self {
        self.delete.push((path.into(), members.into()));
        self
    }

    /// Whether the update changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.paths().next().is_none()
    }

    /// Whether the update creates a missing item. An update with nothing but removals does not; an
    /// empty update does.
    #[must_use]
    pub fn creates_item(&self) -> bool {
        let only_removes = self.set.is_empty() && self.add.is_empty();
        self.is_empty() || !only_removes
    }
}

impl UpdateOperand {
    /// The value at `path`, or `default` if it does not exist.
    #[must_use]
    pub fn if_not_exists(path: impl Into<Path>, default: impl Into<Self>) -> Self {
        Self::IfNotExists(path.into(), Box::new(default.into()))
    }

    /// The concatenation of two lists.
    #[must_use]
    pub fn list_append(left: impl Into<Self>, right: impl Into<Self>) -> Self {
        Self::ListAppend(Box::new(left.into()), Box::new(right.into()))
    }

    #[must_use]
    pub fn plus(self, other: impl Into<Self>) -> Self {
        Self::Plus(Box::new(self), Box::new(other.into()))
    }

    #[must_use]
    pub fn minus(self, other: impl Into<Self>) -> Self {
        Self::Minus(Box::new(self), Box::new(other.into()))
    }
}

impl From<Path> for UpdateOperand {
    fn from(path: Path) -> Self {
        Self::Path(path)
    }
}

impl<V: Into<Value>> From<V> for UpdateOperand {
    fn from(value: V) -> Self {
        Self::Value(value.into())
    }
}

impl KeyCondition {
    /// Matches a whole partition.
    #[must_use]
    pub fn new(partition_name: impl Into<String>, partition: impl Into<Value>) -> Self {
        Self {
            partition_name: partition_name.into(),
            partition: partition.into(),
            rest: Vec::new(),
            sort: None,
        }
    }

    #[must_use]
    pub fn with_sort(mut self, name: impl Into<String>, condition: SortCondition) -> Self {
        self.sort = Some((name.into(), condition));
        self
    }
}

impl Projection {
    /// A projection on top-level attributes or paths.
    #[must_use]
    pub fn new<P: Into<Path>>(paths: impl IntoIterator<Item = P>) -> Self {
        let paths = paths.into_iter().map(Into::into).collect();
        Self { paths }
    }
}

impl Comparator {
    /// The comparator's text.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }

    /// The equivalent comparator for swapped operands.
    #[must_use]
    pub fn mirrored(self) -> Self {
        match self {
            Self::Equal | Self::NotEqual => self,
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
        }
    }
}
