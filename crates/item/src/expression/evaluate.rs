//! Evaluates conditions on items.
//!
//! A missing value equals nothing and has neither order nor size: every comparison with it is
//! false, except `<>`, which is true. The same applies to values of different types.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::path::{Document, Path};
use super::tree::{Comparator, Condition, KeyCondition, Operand, SortCondition};
use crate::binary::DecodeError;
use crate::number::Number;
use crate::value::Value;

impl Condition {
    /// Whether the condition is true for `document`.
    ///
    /// # Errors
    /// When the stored form of the document is damaged.
    pub fn matches<D: Document + ?Sized>(&self, document: &D) -> Result<bool, DecodeError> {
        let exists = |path: &Path| Ok(document.resolve(path)?.is_some());
        match self {
            Self::Compare(left, comparator, right) => {
                let (left, right) = (resolve(left, document)?, resolve(right, document)?);
                Ok(compare(left.as_deref(), *comparator, right.as_deref()))
            }
            Self::Between(operand, lower, upper) => {
                let (Some(value), Some(lower), Some(upper)) = (
                    resolve(operand, document)?,
                    resolve(lower, document)?,
                    resolve(upper, document)?,
                ) else {
                    return Ok(false);
                };
                Ok(order(&value, &lower).is_some_and(Ordering::is_ge)
                    && order(&value, &upper).is_some_and(Ordering::is_le))
            }
            Self::In(operand, choices) => {
                let Some(value) = resolve(operand, document)? else {
                    return Ok(false);
                };
                for choice in choices {
                    if resolve(choice, document)?.is_some_and(|choice| choice == value) {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Exists(path) => exists(path),
            Self::NotExists(path) => exists(path).map(|exists| !exists),
            Self::IsType(path, kind) => {
                let found = document.resolve(path)?;
                Ok(found.is_some_and(|value| value.kind() == *kind))
            }
            Self::BeginsWith(operand, prefix) => {
                let (value, prefix) = (resolve(operand, document)?, resolve(prefix, document)?);
                Ok(match (value.as_deref(), prefix.as_deref()) {
                    (Some(value), Some(prefix)) => begins_with(value, prefix),
                    _ => false,
                })
            }
            Self::Contains(operand, part) => {
                let (value, part) = (resolve(operand, document)?, resolve(part, document)?);
                Ok(match (value.as_deref(), part.as_deref()) {
                    (Some(value), Some(part)) => contains(value, part),
                    _ => false,
                })
            }
            Self::And(left, right) => Ok(left.matches(document)? && right.matches(document)?),
            Self::Or(left, right) => Ok(left.matches(document)? || right.matches(document)?),
            Self::Not(condition) => condition.matches(document).map(|holds| !holds),
        }
    }
}

impl KeyCondition {
    /// Whether the keys of `document` match the condition.
    ///
    /// # Errors
    /// When the stored form of the document is damaged.
    pub fn matches<D: Document + ?Sized>(&self, document: &D) -> Result<bool, DecodeError> {
        let partition = document.resolve(&Path::new(&self.partition_name))?;
        if partition.as_deref() != Some(&self.partition) {
            return Ok(false);
        }
        for (name, value) in &self.rest {
            if document.resolve(&Path::new(name))?.as_deref() != Some(value) {
                return Ok(false);
            }
        }
        let Some((name, condition)) = &self.sort else {
            return Ok(true);
        };
        let sort = document.resolve(&Path::new(name))?;
        Ok(sort.is_some_and(|value| condition.matches(&value)))
    }
}

impl SortCondition {
    /// Whether the condition is true for the value of a sort key.
    #[must_use]
    pub fn matches(&self, value: &Value) -> bool {
        let ordered = |bound, accept: fn(Ordering) -> bool| order(value, bound).is_some_and(accept);
        match self {
            Self::Equal(wanted) => value == wanted,
            Self::Less(bound) => ordered(bound, Ordering::is_lt),
            Self::LessOrEqual(bound) => ordered(bound, Ordering::is_le),
            Self::Greater(bound) => ordered(bound, Ordering::is_gt),
            Self::GreaterOrEqual(bound) => ordered(bound, Ordering::is_ge),
            Self::Between(lower, upper) => {
                ordered(lower, Ordering::is_ge) && ordered(upper, Ordering::is_le)
            }
            Self::BeginsWith(prefix) => begins_with(value, prefix),
        }
    }
}

fn resolve<'a, D: Document + ?Sized>(
    operand: &'a Operand,
    document: &'a D,
) -> Result<Option<Cow<'a, Value>>, DecodeError> {
    Ok(match operand {
        Operand::Path(path) => document.resolve(path)?,
        Operand::Value(value) => Some(Cow::Borrowed(value)),
        Operand::Size(path) => document
            .resolve(path)?
            .and_then(|value| size_of(&value))
            .map(|size| Cow::Owned(Value::N(size))),
    })
}

fn compare(left: Option<&Value>, comparator: Comparator, right: Option<&Value>) -> bool {
    let (Some(left), Some(right)) = (left, right) else {
        return comparator == Comparator::NotEqual;
    };
    match comparator {
        Comparator::Equal => left == right,
        Comparator::NotEqual => left != right,
        Comparator::Less => order(left, right).is_some_and(Ordering::is_lt),
        Comparator::LessOrEqual => order(left, right).is_some_and(Ordering::is_le),
        Comparator::Greater => order(left, right).is_some_and(Ordering::is_gt),
        Comparator::GreaterOrEqual => order(left, right).is_some_and(Ordering::is_ge),
    }
}

/// The order of two strings, numbers or binaries. Other types have no order.
pub(super) fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::S(left), Value::S(right)) => Some(left.cmp(right)),
        (Value::N(left), Value::N(right)) => Some(left.cmp(right)),
        (Value::B(left), Value::B(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

/// The result of `size`, for the types that have a size.
pub(super) fn size_of(value: &Value) -> Option<Number> {
    let size = match value {
        // DynamoDB counts UTF-16 code units here, although it stores and bills UTF-8.
        Value::S(text) => text.encode_utf16().count(),
        Value::B(bytes) => bytes.len(),
        Value::M(map) => map.len(),
        Value::L(list) => list.len(),
        Value::Ss(set) => set.len(),
        Value::Ns(set) => set.len(),
        Value::Bs(set) => set.len(),
        Value::N(_) | Value::Bool(_) | Value::Null => return None,
    };
    u64::try_from(size).ok().map(Number::from)
}

fn begins_with(value: &Value, prefix: &Value) -> bool {
    match (value, prefix) {
        (Value::S(text), Value::S(prefix)) => text.starts_with(prefix.as_str()),
        (Value::B(bytes), Value::B(prefix)) => bytes.starts_with(prefix),
        _ => false,
    }
}

fn contains(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::S(text), Value::S(part)) => text.contains(part.as_str()),
        (Value::B(bytes), Value::B(part)) => {
            part.is_empty() || bytes.windows(part.len()).any(|window| window == part)
        }
        (Value::Ss(set), Value::S(member)) => set.contains(member),
        (Value::Ns(set), Value::N(member)) => set.contains(member),
        (Value::Bs(set), Value::B(member)) => set.contains(member),
        (Value::L(list), element) => list.contains(element),
        _ => false,
    }
}
