//! `QueryFilter` and `ScanFilter`: conditions by attribute name. `KeyConditions` has the same form.

use homeport_item::Value;
use homeport_item::expression::Condition;
use homeport_item::schema::KeySchema;
use serde::Deserialize;

use super::conditional_operator::Join;
use super::operator::Operator;
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{Attribute, Element, List, Mapping, Named, Text, Wording};

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

/// Conditions by attribute name.
pub(crate) type Conditions<'a> = Mapping<'a, Element<ConditionInput<'a>>>;

/// The constraint that every condition has an operator.
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

/// Checks all values, which come before the other checks of the conditions.
pub(crate) fn check_values(
    given: Option<&Conditions<'_>>,
    wording: Wording,
) -> Result<(), Failure> {
    let conditions = given.iter().flat_map(|given| &given.0);
    let mut values = conditions
        .flat_map(|(_, Element(condition))| &condition.attribute_value_list)
        .flat_map(|list| &list.0);
    match values.find_map(|Attribute(read)| read.as_ref().err()) {
        None => Ok(()),
        Some(problem) => Err(problem.failure(wording)),
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

/// Checks that the filter of a query has no key attributes.
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

/// An attribute name with an operator and values that match.
type Checked<'g> = (&'g str, Operator, Vec<Value>);

/// The conditions after their checks.
pub(super) fn checked<'g>(given: Option<&'g Conditions<'_>>) -> Result<Vec<Checked<'g>>, Failure> {
    let mut checked = Vec::new();
    for (name, Element(condition)) in given.iter().flat_map(|given| &given.0) {
        // The constraints reject a condition without an operator.
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

/// A valid value of a condition or an update.
pub(super) fn value(given: &Attribute) -> Result<Value, Failure> {
    let read = given.0.clone();
    read.map_err(|problem| problem.failure(Wording::Newer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeport_item::Item;

    fn conditions(json: &str) -> Conditions<'_> {
        serde_json::from_str(json).expect("conditions")
    }

    #[test]
    fn conditions_are_joined_by_operator() {
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
    fn many_conditions_do_not_overflow_stack() {
        let many: Vec<String> = (0..100_000)
            .map(|at| format!(r#""a{at}":{{"ComparisonOperator":"NULL"}}"#))
            .collect();
        let text = format!("{{{}}}", many.join(","));
        let given = conditions(&text);
        let filter = filter(Some(&given), Join::All).expect("valid");
        assert_eq!(filter.expect("a filter").matches(&Item::new()), Ok(true));
    }

    #[test]
    fn missing_operators_are_violations() {
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
