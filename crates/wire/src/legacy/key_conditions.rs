//! `KeyConditions`: the key conditions of a query.

use homeport_item::expression::{self, KeyCondition, KeyConditionError, SortCondition};
use homeport_item::schema::{KEY_PART_ATTRIBUTES_MAX, KeySchema};

use super::conditions::{self, Conditions};
use crate::access::{self, Values};
use crate::failure::Failure;

/// One for the partition key and one for the sort key, if each has one attribute.
const SIMPLE_CONDITIONS_MAX: usize = 2;
/// One for each attribute that a key can have.
const CONDITIONS_MAX: usize = 2 * KEY_PART_ATTRIBUTES_MAX;

/// Conditions that are not yet bound to the keys of a table or an index.
#[derive(Debug)]
pub(crate) struct KeyConditions(
    /// `None` is an operator that no query can use. This is reported when the keys are known.
    Vec<(String, Option<SortCondition>)>,
);

/// The partition that the conditions select.
pub(crate) fn partition(given: Option<&Conditions<'_>>, name: &str) -> Values {
    let conditions = given.and_then(|given| KeyConditions::read(given).ok());
    let equal = conditions.iter().flat_map(|conditions| &conditions.0);
    let mut equal = equal.filter_map(|(known, condition)| match condition {
        Some(SortCondition::Equal(value)) if known == name => Some(value),
        _ => None,
    });
    equal.next().map_or(Values::Unknown, access::key_text)
}

impl KeyConditions {
    pub(crate) fn read(given: &Conditions<'_>) -> Result<Self, Failure> {
        let checked = conditions::checked(Some(given))?;
        if !(1..=CONDITIONS_MAX).contains(&checked.len()) {
            return Err(KeyConditionError::TooManyConditions.into());
        }
        let conditions = checked
            .into_iter()
            .map(|(name, operator, values)| (name.to_owned(), operator.key_condition(values)));
        Ok(Self(conditions.collect()))
    }

    /// Matches the conditions with the keys.
    pub(crate) fn bind(self, keys: &KeySchema) -> Result<KeyCondition, Failure> {
        if !keys.is_multi_attribute() {
            self.check_simple(keys)?;
        }
        let conditions = self
            .0
            .into_iter()
            .map(|(name, condition)| Some((name, condition?)))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| {
                Failure::validation(
                    "Attempted conditional constraint is not an indexable operation",
                )
            })?;
        Ok(expression::KeyConditions::new(conditions).bind(keys)?)
    }

    /// Checks conditions on a key whose parts have one attribute each.
    fn check_simple(&self, keys: &KeySchema) -> Result<(), KeyConditionError> {
        let has = |name: &str| self.0.iter().any(|(known, _)| known == name);
        let missed = |name: &str| Err(KeyConditionError::MissingKeyElement(name.to_owned()));
        if self.0.len() > SIMPLE_CONDITIONS_MAX {
            return Err(KeyConditionError::TooManyConditions);
        }
        if self.0.len() > 1 && keys.sort.is_none() {
            return Err(KeyConditionError::NotSupported);
        }
        if !has(&keys.partition.name) {
            return missed(&keys.partition.name);
        }
        match &keys.sort {
            Some(sort) if self.0.len() > 1 && !has(&sort.name) => missed(&sort.name),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeport_item::KeyKind;
    use homeport_item::schema::KeyAttribute;

    fn bound(json: &str, sort: bool) -> Result<KeyCondition, String> {
        let given: Conditions<'_> = serde_json::from_str(json).expect("conditions");
        let keys = KeySchema::new(
            KeyAttribute::new("pk", KeyKind::S),
            sort.then(|| KeyAttribute::new("sk", KeyKind::N)),
        );
        KeyConditions::read(&given)
            .and_then(|conditions| conditions.bind(&keys))
            .map_err(|failure| failure.text().unwrap_or_default().to_owned())
    }

    #[test]
    fn conditions_are_bound_to_keys() {
        let condition = bound(
            r#"{"sk":{"ComparisonOperator":"BETWEEN","AttributeValueList":[{"N":"1"},{"N":"2"}]},"pk":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"x"}]}}"#,
            true,
        );
        let expected = KeyCondition::new("pk", "x")
            .with_sort("sk", SortCondition::Between(1.into(), 2.into()));
        assert_eq!(condition, Ok(expected));
    }

    #[test]
    fn unusable_conditions_are_rejected() {
        let pk = r#""pk":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"x"}]}"#;
        for (json, sort, text) in [
            (
                "{}".to_owned(),
                true,
                "Conditions can be of length 1 or 2 only",
            ),
            (
                r#"{"a":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"x"}]}}"#.to_owned(),
                true,
                "Query condition missed key schema element: pk",
            ),
            (
                format!(r#"{{{pk},"a":{{"ComparisonOperator":"NULL"}}}}"#),
                true,
                "Query condition missed key schema element: sk",
            ),
            (
                format!(r#"{{{pk},"a":{{"ComparisonOperator":"NULL"}}}}"#),
                false,
                "Query key condition not supported",
            ),
            (
                format!(
                    r#"{{{pk},"sk":{{"ComparisonOperator":"NE","AttributeValueList":[{{"N":"1"}}]}}}}"#
                ),
                true,
                "Attempted conditional constraint is not an indexable operation",
            ),
            (
                r#"{"pk":{"ComparisonOperator":"GT","AttributeValueList":[{"S":"x"}]}}"#.to_owned(),
                true,
                "Query key condition not supported",
            ),
            (
                format!(
                    r#"{{{pk},"sk":{{"ComparisonOperator":"EQ","AttributeValueList":[{{"S":"1"}}]}}}}"#
                ),
                true,
                "One or more parameter values were invalid: Condition parameter type does not match schema type",
            ),
        ] {
            assert_eq!(bound(&json, sort), Err(text.to_owned()), "{json}");
        }
    }
}
