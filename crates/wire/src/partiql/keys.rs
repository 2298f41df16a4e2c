//! The keys in the condition of a statement.

use homeport_item::expression::{Comparator, Condition, Operand, SortCondition};
use homeport_item::schema::{KeyAttribute, KeySchema};
use homeport_item::{Item, KeyKind, Value};

use crate::failure::Failure;

/// The one item that a statement addresses, and the rest of its condition.
#[derive(Debug, PartialEq)]
pub(crate) struct Addressed {
    pub(crate) key: Item,
    pub(crate) rest: Option<Condition>,
}

/// Why a condition does not address one item.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AddressError {
    #[error(
        "Key attribute's data type should match its data type in table's schema: Key {attribute}"
    )]
    OtherType { attribute: String },
    #[error("Key value must be of type S, N, or B. Key name: {attribute}, Key type: {kind}")]
    NotKeyType {
        attribute: String,
        kind: &'static str,
    },
    #[error(
        "Multiple conditions on same key {0}. Only single item Update/Insert/Delete are supported"
    )]
    Ambiguous(String),
    #[error("Where clause does not contain a mandatory equality on all key attributes")]
    Incomplete,
}

impl From<AddressError> for Failure {
    fn from(error: AddressError) -> Self {
        Self::validation(error.to_string())
    }
}

/// Takes the key of the item out of a condition, which must require a value for every key attribute.
pub(crate) fn addressed(
    keys: &KeySchema,
    condition: Option<Condition>,
) -> Result<Addressed, AddressError> {
    let mut key = Item::new();
    let mut rest = Vec::new();
    for conjunct in condition.map_or(Vec::new(), Condition::conjuncts) {
        let pinned = equality(&conjunct)
            .and_then(|(name, value)| Some((attribute(keys, name)?, value.clone())));
        let Some((attribute, value)) = pinned else {
            rest.push(conjunct);
            continue;
        };
        check_kind(attribute, &value)?;
        match key.get(&attribute.name) {
            Some(known) if *known != value => {
                return Err(AddressError::Ambiguous(attribute.name.clone()));
            }
            _ => {
                key.insert(attribute.name.as_str(), value);
            }
        }
    }
    if keys
        .attributes()
        .any(|attribute| key.get(&attribute.name).is_none())
    {
        return Err(AddressError::Incomplete);
    }
    Ok(Addressed {
        key,
        rest: Condition::all(rest),
    })
}

/// The values that a condition with `=` or `IN` allows for an attribute.
pub(crate) fn choices<'c>(condition: &'c Condition, name: &str) -> Option<Vec<&'c Value>> {
    match condition {
        Condition::Compare(..) => {
            let (found, value) = equality(condition)?;
            (found == name).then(|| vec![value])
        }
        // An empty list names no partition: the condition never holds.
        Condition::In(Operand::Path(path), choices)
            if path.name() == name && path.nested().is_empty() && !choices.is_empty() =>
        {
            choices
                .iter()
                .map(|choice| match choice {
                    Operand::Value(value) => Some(value),
                    Operand::Path(_) | Operand::Size(_) => None,
                })
                .collect()
        }
        _ => None,
    }
}

/// The condition as a sort condition, if a query can use it.
pub(super) fn sort_condition(condition: &Condition, name: &str) -> Option<SortCondition> {
    let is_key = |operand: &Operand| matches!(operand, Operand::Path(path) if path.name() == name && path.nested().is_empty());
    match condition {
        Condition::Compare(left, comparator, right) => {
            let (comparator, value) = match (left, right) {
                (left, Operand::Value(value)) if is_key(left) => (*comparator, value.clone()),
                (Operand::Value(value), right) if is_key(right) => {
                    (comparator.mirrored(), value.clone())
                }
                _ => return None,
            };
            Some(match comparator {
                Comparator::Equal => SortCondition::Equal(value),
                Comparator::Less => SortCondition::Less(value),
                Comparator::LessOrEqual => SortCondition::LessOrEqual(value),
                Comparator::Greater => SortCondition::Greater(value),
                Comparator::GreaterOrEqual => SortCondition::GreaterOrEqual(value),
                Comparator::NotEqual => return None,
            })
        }
        Condition::Between(key, Operand::Value(lower), Operand::Value(upper)) if is_key(key) => {
            Some(SortCondition::Between(lower.clone(), upper.clone()))
        }
        Condition::BeginsWith(key, Operand::Value(prefix)) if is_key(key) => {
            Some(SortCondition::BeginsWith(prefix.clone()))
        }
        _ => None,
    }
}

/// The values of a sort condition.
pub(super) fn values(condition: &SortCondition) -> Vec<&Value> {
    match condition {
        SortCondition::Equal(value)
        | SortCondition::Less(value)
        | SortCondition::LessOrEqual(value)
        | SortCondition::Greater(value)
        | SortCondition::GreaterOrEqual(value)
        | SortCondition::BeginsWith(value) => vec![value],
        SortCondition::Between(lower, upper) => vec![lower, upper],
    }
}

/// Checks that a value has the type of its key attribute.
pub(super) fn check_kind(attribute: &KeyAttribute, value: &Value) -> Result<(), AddressError> {
    let name = || attribute.name.clone();
    match KeyKind::of(value) {
        Some(kind) if kind == attribute.kind => Ok(()),
        Some(_) => Err(AddressError::OtherType { attribute: name() }),
        None => Err(AddressError::NotKeyType {
            attribute: name(),
            kind: value.kind().name(),
        }),
    }
}

fn attribute<'s>(keys: &'s KeySchema, name: &str) -> Option<&'s KeyAttribute> {
    keys.attributes().find(|attribute| attribute.name == name)
}

/// The attribute and the value of `attribute = value`.
fn equality(condition: &Condition) -> Option<(&str, &Value)> {
    match condition {
        Condition::Compare(Operand::Path(path), Comparator::Equal, Operand::Value(value))
        | Condition::Compare(Operand::Value(value), Comparator::Equal, Operand::Path(path))
            if path.nested().is_empty() =>
        {
            Some((path.name(), value))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeport_partiql::Statement;

    fn of(condition: &str) -> Result<Addressed, String> {
        let keys = KeySchema::new(
            KeyAttribute::new("pk", KeyKind::S),
            Some(KeyAttribute::new("sk", KeyKind::N)),
        );
        let text = format!("DELETE FROM t {condition}");
        let Ok(Statement::Delete(delete)) = Statement::parse(&text, &[]) else {
            panic!("{text} is no statement");
        };
        addressed(&keys, delete.condition).map_err(|error| error.to_string())
    }

    #[test]
    fn condition_addresses_item_to_write() {
        let key = Item::new().with("pk", "a").with("sk", 1);
        for (condition, has_rest) in [
            ("WHERE pk = 'a' AND sk = 1", false),
            ("WHERE (1 = sk AND 'a' = pk) AND sk = 1.0", false),
            ("WHERE pk = 'a' AND sk = 1 AND (x = 1 OR y = 2)", true),
        ] {
            let addressed = of(condition).expect("an item");
            assert_eq!(addressed.key, key, "{condition}");
            assert_eq!(addressed.rest.is_some(), has_rest, "{condition}");
        }
    }

    #[test]
    fn conditions_without_single_item_are_rejected() {
        let mandatory = "Where clause does not contain a mandatory equality on all key attributes";
        for (condition, text) in [
            ("", mandatory),
            ("WHERE pk = 'a'", mandatory),
            ("WHERE pk = 'a' AND sk > 1", mandatory),
            ("WHERE pk = 'a' OR sk = 1", mandatory),
            ("WHERE pk IN ['a'] AND sk = 1", mandatory),
            (
                "WHERE NOT (NOT pk = 'a' ) AND sk = 1 AND pk = 'a' AND pk = 'b'",
                "Multiple conditions on same key pk. Only single item Update/Insert/Delete are supported",
            ),
            (
                "WHERE pk = 'a' AND sk = '1'",
                "Key attribute's data type should match its data type in table's schema: Key sk",
            ),
            (
                "WHERE pk = true AND sk = 1",
                "Key value must be of type S, N, or B. Key name: pk, Key type: BOOL",
            ),
        ] {
            assert_eq!(of(condition), Err(text.to_owned()), "{condition}");
        }
    }
}
