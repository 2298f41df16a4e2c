//! `QueryFilter` and `ScanFilter`: a condition for each attribute that is looked at. `KeyConditions` has the same form.

use homeport_item::Value;
use homeport_item::expression::Condition;
use homeport_item::schema::KeySchema;
use serde::Deserialize;

use super::conditional_operator::Join;
use super::operator::Operator;
use crate::constraints::Constraints;
use crate::expressions::Values;
use crate::failure::Failure;
use crate::input::{Attribute, Element, List, Mapping, Named, Text};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ConditionInput<'a> {
    attribute_value_list: Option<List<Attribute>>,
    #[serde(borrow)]
    comparison_operator: Option<Text<'a>>,
}

impl Named for ConditionInput<'_> {
    const NAME: &'static str = "Condition";
}

/// Conditions by the names of their attributes.
pub(crate) type Conditions<'a> = Mapping<'a, Element<ConditionInput<'a>>>;

/// A condition without an operator is one of the violations that are reported together.
pub(crate) fn constrain(
    constraints: &mut Constraints,
    member: &str,
    given: Option<&Conditions<'_>>,
) {
    for (name, Element(condition)) in given.iter().flat_map(|given| &given.0) {
        if condition.comparison_operator.is_none() {
            let path = format!("{member}.{name}.member.comparisonOperator");
            constraints.not_null::<Text<'_>>(&path, None);
        }
    }
}

/// Checks every value before anything else is said about the conditions.
pub(crate) fn check_values(given: Option<&Conditions<'_>>, wording: Values) -> Result<(), Failure> {
    let conditions = given.iter().flat_map(|given| &given.0);
    let mut values = conditions
        .flat_map(|(_, Element(condition))| &condition.attribute_value_list)
        .flat_map(|list| &list.0);
    match values.find_map(|Attribute(read)| read.as_ref().err()) {
        None => Ok(()),
        Some(problem) => Err(Failure::validation(match wording {
            Values::Newer => problem.newer(),
            Values::Older => problem.older(),
        })),
    }
}

/// The conditions as a filter.
pub(crate) fn filter(
    given: Option<&Conditions<'_>>,
    join: Join,
) -> Result<Option<Condition>, Failure> {
    let mut conditions = Vec::new();
    for (name, operator, values) in checked(given)? {
        conditions.extend(operator.condition(name, values));
    }
    Ok(join.conditions(conditions))
}

/// A query's filter may not ask for what its key conditions ask for.
pub(crate) fn check_filter_keys<'n>(
    keys: &KeySchema,
    names: impl IntoIterator<Item = &'n str>,
) -> Result<(), Failure> {
    match names.into_iter().find(|name| keys.has(name)) {
        None => Ok(()),
        Some(name) => Err(Failure::validation(format!(
            "QueryFilter can only contain non-primary key attributes: Primary key attribute: {name}"
        ))),
    }
}

/// An attribute's name with an operator and values that fit each other.
type Checked<'g> = (&'g str, Operator, Vec<Value>);

/// The conditions, each found to be one.
pub(super) fn checked<'g>(given: Option<&'g Conditions<'_>>) -> Result<Vec<Checked<'g>>, Failure> {
    let mut checked = Vec::new();
    for (name, Element(condition)) in given.iter().flat_map(|given| &given.0) {
        // The constraints let no condition without an operator through.
        let operator = condition.comparison_operator.as_ref();
        let operator = Operator::parse(operator.map_or("", Text::as_str))?;
        let values = list(condition.attribute_value_list.as_ref())?;
        operator.check_count(values.len())?;
        operator.check_kinds(&values)?;
        operator.check_together(&values)?;
        checked.push((name.as_ref(), operator, values));
    }
    Ok(checked)
}

pub(super) fn list(given: Option<&List<Attribute>>) -> Result<Vec<Value>, Failure> {
    let given = given.map_or(&[][..], |list| &list.0);
    given.iter().map(value).collect()
}

/// A value of a condition or an update, within the limits.
pub(super) fn value(given: &Attribute) -> Result<Value, Failure> {
    let read = given.0.clone();
    read.map_err(|problem| Failure::validation(problem.newer()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeport_item::Item;

    fn conditions(json: &str) -> Conditions<'_> {
        serde_json::from_str(json).expect("conditions")
    }

    #[test]
    fn conditions_are_joined_as_asked() {
        let given = conditions(
            r#"{"a":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"x"}]},"b.c":{"ComparisonOperator":"NOT_NULL"}}"#,
        );
        let both = Item::new().with("a", "x").with("b.c", 1);
        let one = Item::new().with("a", "y").with("b.c", 1);
        for (join, item, expected) in [
            (Join::All, &both, true),
            (Join::All, &one, false),
            (Join::Any, &one, true),
        ] {
            let filter = filter(Some(&given), join).expect("valid");
            let filter = filter.expect("a filter");
            assert_eq!(filter.matches(item), Ok(expected), "{join:?} {item:?}");
        }
        assert_eq!(filter(Some(&conditions("{}")), Join::All), Ok(None));
    }

    #[test]
    fn very_many_conditions_are_no_danger_to_the_stack() {
        let many: Vec<String> = (0..100_000)
            .map(|at| format!(r#""a{at}":{{"ComparisonOperator":"NULL"}}"#))
            .collect();
        let text = format!("{{{}}}", many.join(","));
        let given = conditions(&text);
        let filter = filter(Some(&given), Join::All).expect("valid");
        assert_eq!(filter.expect("a filter").matches(&Item::new()), Ok(true));
    }

    #[test]
    fn conditions_without_an_operator_are_violations() {
        let given = conditions(r#"{"a":{"AttributeValueList":[{"S":"x"}]}}"#);
        let mut constraints = Constraints::new();
        constrain(&mut constraints, "scanFilter", Some(&given));
        assert_eq!(
            constraints.finish().expect_err("a violation").text(),
            Some(
                "1 validation error detected: Value null at 'scanFilter.a.member.comparisonOperator' failed to satisfy constraint: Member must not be null"
            )
        );
    }
}
