//! Parses key conditions: first as a general condition, which is then split into the parts that a
//! query can use.

use super::error::{ExpressionError, ExpressionKind, KeyConditionError};
use super::parse_condition;
use super::path::Path;
use super::placeholders::Placeholders;
use super::tree::{Comparator, Condition, KeyCondition, KeyConditions, Operand, SortCondition};
use crate::schema::{KeyError, KeySchema};
use crate::value::Value;

/// Maximum number of conditions if both key parts have one attribute.
const CONDITIONS_MAX: usize = 2;

impl KeyConditions {
    /// Creates conditions that did not come from a text, at most one per attribute.
    #[must_use]
    pub fn new(conditions: Vec<(String, SortCondition)>) -> Self {
        Self(conditions)
    }

    /// Parses a KeyConditionExpression without knowing the key schema.
    ///
    /// # Errors
    /// When the condition is invalid for every key schema, with DynamoDB's message.
    pub fn parse(text: &str, placeholders: &mut Placeholders) -> Result<Self, ExpressionError> {
        let condition = parse_condition::parse(ExpressionKind::KeyCondition, text, placeholders)?;
        let mut found = Vec::new();
        split_condition(condition, &mut found)?;
        Ok(Self(found))
    }

    /// The attributes in the conditions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The value in the equality condition on `name`, if there is one.
    #[must_use]
    pub fn equality_value(&self, name: &str) -> Option<&Value> {
        self.0
            .iter()
            .find_map(|(known, condition)| match condition {
                SortCondition::Equal(value) if known == name => Some(value),
                _ => None,
            })
    }

    /// Assigns the conditions to the keys of `schema`.
    ///
    /// # Errors
    /// When the conditions do not fit these keys.
    pub fn bind(self, schema: &KeySchema) -> Result<KeyCondition, KeyConditionError> {
        let most = match schema.is_multi_attribute() {
            true => schema.attributes().count(),
            false => CONDITIONS_MAX,
        };
        let given = self.0.len();
        if given > most {
            let keys = schema.attributes().count();
            return Err(KeyConditionError::MoreThanKeys { given, keys });
        }
        assign(self.0, schema)
    }
}

impl KeyCondition {
    /// Parses a KeyConditionExpression and binds it to the keys of `schema`.
    ///
    /// # Errors
    /// When the text is invalid or does not fit these keys, with DynamoDB's message.
    pub fn parse(
        text: &str,
        placeholders: &mut Placeholders,
        schema: &KeySchema,
    ) -> Result<Self, ExpressionError> {
        Ok(KeyConditions::parse(text, placeholders)?.bind(schema)?)
    }

    /// Validates a condition built in code against the keys.
    ///
    /// # Errors
    /// When it names other attributes or a value does not fit its key.
    pub fn check(&self, schema: &KeySchema) -> Result<(), KeyConditionError> {
        if self.partition_name != schema.partition.name {
            return Err(KeyConditionError::MissingKeyElement(
                schema.partition.name.clone(),
            ));
        }
        let partition = schema.check_partition(&self.partition);
        partition.map_err(from_key_error)?;
        let behind_first = schema.partition_rest.iter();
        let mut expected = behind_first.chain(schema.sort_attributes());
        let mut next_is = |name: &str| match expected.next() {
            None => Err(KeyConditionError::NotSupported),
            Some(attribute) if attribute.name != name => {
                Err(KeyConditionError::MissingKeyElement(attribute.name.clone()))
            }
            Some(_) => Ok(()),
        };
        for (name, value) in &self.rest {
            next_is(name)?;
            let checked = schema.check_attribute(name, value);
            checked.map_err(from_key_error)?;
        }
        if let Some(missed) = schema.partition_rest.get(self.rest.len()) {
            return Err(KeyConditionError::MissingKeyElement(missed.name.clone()));
        }
        let Some((name, condition)) = &self.sort else {
            return Ok(());
        };
        next_is(name)?;
        for value in condition.values() {
            let checked = schema.check_attribute(name, value);
            checked.map_err(from_key_error)?;
        }
        match condition {
            SortCondition::Between(lower, upper) if is_above(lower, upper) => {
                Err(KeyConditionError::BoundsReversed)
            }
            SortCondition::BeginsWith(Value::N(_)) => Err(KeyConditionError::NumberPrefix),
            _ => Ok(()),
        }
    }
}

impl SortCondition {
    fn values(&self) -> impl Iterator<Item = &Value> {
        let (first, second) = match self {
            Self::Equal(value)
            | Self::Less(value)
            | Self::LessOrEqual(value)
            | Self::Greater(value)
            | Self::GreaterOrEqual(value)
            | Self::BeginsWith(value) => (value, None),
            Self::Between(lower, upper) => (lower, Some(upper)),
        };
        std::iter::once(first).chain(second)
    }
}

/// Whether `one` is greater than `other`. Both have the same type.
fn is_above(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::S(one), Value::S(other)) => one > other,
        (Value::N(one), Value::N(other)) => one > other,
        (Value::B(one), Value::B(other)) => one > other,
        _ => false,
    }
}

fn from_key_error(error: KeyError) -> KeyConditionError {
    match error {
        KeyError::WrongKind { .. } => KeyConditionError::WrongKind,
        other => KeyConditionError::Key(other),
    }
}

/// Splits a condition at its ANDs and collects each part with its attribute.
fn split_condition(
    condition: Condition,
    found: &mut Vec<(String, SortCondition)>,
) -> Result<(), KeyConditionError> {
    let (name, sort) = match condition {
        Condition::And(left, right) => {
            split_condition(*left, found)?;
            return split_condition(*right, found);
        }
        Condition::Compare(left, comparator, right) => compare(left, comparator, right)?,
        Condition::Between(first, lower, upper) => {
            let name = key_name("BETWEEN", first)?;
            (name, SortCondition::Between(value(lower)?, value(upper)?))
        }
        Condition::BeginsWith(first, prefix) => {
            let name = key_name("begins_with", first)?;
            (name, SortCondition::BeginsWith(value(prefix)?))
        }
        Condition::In(..) => return Err(KeyConditionError::Operator("IN")),
        Condition::Exists(_) => return Err(KeyConditionError::Operator("attribute_exists")),
        Condition::NotExists(_) => {
            return Err(KeyConditionError::Operator("attribute_not_exists"));
        }
        Condition::IsType(..) => return Err(KeyConditionError::Operator("attribute_type")),
        Condition::Contains(..) => return Err(KeyConditionError::Operator("contains")),
        Condition::Or(..) => return Err(KeyConditionError::Operator("OR")),
        Condition::Not(_) => return Err(KeyConditionError::Operator("NOT")),
    };
    if found.iter().any(|(known, _)| *known == name) {
        return Err(KeyConditionError::DuplicateCondition);
    }
    found.push((name, sort));
    Ok(())
}

fn compare(
    left: Operand,
    comparator: Comparator,
    right: Operand,
) -> Result<(String, SortCondition), KeyConditionError> {
    if comparator == Comparator::NotEqual {
        return Err(KeyConditionError::Operator("<>"));
    }
    let (name, comparator, value) = match (left, right) {
        (Operand::Size(_), _) | (_, Operand::Size(_)) => {
            return Err(KeyConditionError::NestedOperation);
        }
        (Operand::Path(path), right) => (top_level(&path)?, comparator, value(right)?),
        (Operand::Value(value), Operand::Path(path)) => {
            (top_level(&path)?, comparator.mirrored(), value)
        }
        (Operand::Value(_), Operand::Value(_)) => return Err(KeyConditionError::NoName),
    };
    let condition = match comparator {
        Comparator::Equal | Comparator::NotEqual => SortCondition::Equal(value),
        Comparator::Less => SortCondition::Less(value),
        Comparator::LessOrEqual => SortCondition::LessOrEqual(value),
        Comparator::Greater => SortCondition::Greater(value),
        Comparator::GreaterOrEqual => SortCondition::GreaterOrEqual(value),
    };
    Ok((name, condition))
}

fn key_name(operator: &'static str, operand: Operand) -> Result<String, KeyConditionError> {
    match operand {
        Operand::Path(path) => top_level(&path),
        Operand::Value(_) => Err(KeyConditionError::KeyNotFirst(operator)),
        Operand::Size(_) => Err(KeyConditionError::NestedOperation),
    }
}

fn top_level(path: &Path) -> Result<String, KeyConditionError> {
    match path.nested() {
        [] => Ok(path.name().to_owned()),
        _ => Err(KeyConditionError::NestedAttribute),
    }
}

fn value(operand: Operand) -> Result<Value, KeyConditionError> {
    match operand {
        Operand::Value(value) => Ok(value),
        Operand::Path(_) => Err(KeyConditionError::MultipleNames),
        Operand::Size(_) => Err(KeyConditionError::NestedOperation),
    }
}

/// Assigns the conditions to the keys of `schema`.
fn assign(
    mut found: Vec<(String, SortCondition)>,
    schema: &KeySchema,
) -> Result<KeyCondition, KeyConditionError> {
    if schema.is_multi_attribute() {
        check_partition_equalities(&found, schema)?;
    }
    let mut equalities = Vec::new();
    for attribute in schema.partition_attributes() {
        let at = found.iter().position(|(name, _)| *name == attribute.name);
        let at = at.ok_or_else(|| KeyConditionError::MissingKeyElement(attribute.name.clone()))?;
        let (name, SortCondition::Equal(value)) = found.swap_remove(at) else {
            return Err(KeyConditionError::NotSupported);
        };
        equalities.push((name, value));
    }
    let (partition_name, partition) = equalities.remove(0);
    if schema.is_multi_attribute() {
        take_leading_equalities(&mut found, schema, &mut equalities)?;
    }
    let sort = found.pop();
    if !found.is_empty() {
        return Err(KeyConditionError::NotSupported);
    }
    let condition = KeyCondition {
        partition_name,
        partition,
        rest: equalities,
        sort,
    };
    condition.check(schema)?;
    Ok(condition)
}

/// Checks that every attribute of a multi-attribute partition key has an equality condition. The
/// error names all attributes without one.
fn check_partition_equalities(
    found: &[(String, SortCondition)],
    schema: &KeySchema,
) -> Result<(), KeyConditionError> {
    let is_equal = |name: &str| {
        found
            .iter()
            .any(|(known, condition)| known == name && matches!(condition, SortCondition::Equal(_)))
    };
    let lacking: Vec<&str> = schema
        .partition_attributes()
        .map(|attribute| attribute.name.as_str())
        .filter(|name| !is_equal(name))
        .collect();
    match lacking.is_empty() {
        true => Ok(()),
        false => Err(KeyConditionError::PartitionKeyNotEqual(lacking.join(", "))),
    }
}

/// Moves the conditions on leading sort key attributes from `found` to `equalities`. All but the
/// last attribute with a condition must have an equality.
fn take_leading_equalities(
    found: &mut Vec<(String, SortCondition)>,
    schema: &KeySchema,
    equalities: &mut Vec<(String, Value)>,
) -> Result<(), KeyConditionError> {
    let names: Vec<&str> = schema
        .sort_attributes()
        .map(|attribute| attribute.name.as_str())
        .collect();
    let is_on = |name: &&&str| found.iter().any(|(known, _)| known == **name);
    let Some(last) = names.iter().rposition(|name| is_on(&name)) else {
        return Ok(());
    };
    let mut lacking = Vec::new();
    for name in &names[..last] {
        let at = found.iter().position(|(known, condition)| {
            known == name && matches!(condition, SortCondition::Equal(_))
        });
        match at.map(|at| found.swap_remove(at)) {
            Some((name, SortCondition::Equal(value))) => equalities.push((name, value)),
            _ => lacking.push(*name),
        }
    }
    if lacking.is_empty() {
        return Ok(());
    }
    Err(KeyConditionError::Gap {
        lacking: lacking.join(", "),
        last: names[last].to_owned(),
    })
}
