//! `Expected`: the condition of a write.

use homeport_item::expression::{Condition, Path};
use serde::Deserialize;

use super::conditional_operator::Join;
use super::conditions::{list, value};
use super::operator::Operator;
use crate::failure::Failure;
use crate::input::{Attribute, Element, Flag, List, Mapping, Named, Text};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ExpectedInput<'a> {
    value: Option<Attribute>,
    exists: Option<Flag>,
    #[serde(borrow)]
    comparison_operator: Option<Text<'a>>,
    attribute_value_list: Option<List<Attribute>>,
}

impl Named for ExpectedInput<'_> {
    const NAME: &'static str = "ExpectedAttributeValue";
}

/// Expectations by attribute name.
pub(crate) type Expected<'a> = Mapping<'a, Element<ExpectedInput<'a>>>;

/// The condition of a write; `None` without expectations.
pub(crate) fn condition(
    given: Option<&Expected<'_>>,
    join: Join,
) -> Result<Option<Condition>, Failure> {
    let given = given.map_or(&[][..], |given| &given.0);
    for (_, Element(expected)) in given {
        expected.value.as_ref().map(value).transpose()?;
        list(expected.attribute_value_list.as_ref())?;
    }
    let conditions = given
        .iter()
        .map(|(name, Element(expected))| one(name, expected))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(join.conditions(conditions.into_iter().flatten().collect()))
}

fn one(name: &str, expected: &ExpectedInput<'_>) -> Result<Option<Condition>, Failure> {
    let refused = |text: &str| {
        Err(Failure::invalid_values(format_args!(
            "{text} for Attribute: {name}"
        )))
    };
    if expected.exists.is_some() && expected.comparison_operator.is_some() {
        return refused("Exists and ComparisonOperator cannot be used together");
    }
    if expected.value.is_some() && expected.attribute_value_list.is_some() {
        return refused("Value and AttributeValueList cannot be used together");
    }
    if let Some(operator) = &expected.comparison_operator {
        return compared(name, operator.as_str(), expected);
    }
    if expected.attribute_value_list.is_some() {
        return refused("AttributeValueList can only be used with a ComparisonOperator");
    }
    let exists = expected.exists.map(|flag| flag.0);
    match (exists, &expected.value) {
        (Some(false), Some(_)) => refused("Value cannot be used when Exists is false"),
        (Some(false), None) => Ok(Some(Condition::not_exists(name))),
        (Some(true), None) => refused("Value must be provided when Exists is true"),
        (None, None) => refused("Value must be provided when Exists is null"),
        (_, Some(given)) => Ok(Some(Path::new(name).equals(value(given)?))),
    }
}

fn compared(
    name: &str,
    operator: &str,
    expected: &ExpectedInput<'_>,
) -> Result<Option<Condition>, Failure> {
    let operator = Operator::parse(operator)?;
    let values = match (&expected.attribute_value_list, &expected.value) {
        (Some(_), _) => list(expected.attribute_value_list.as_ref())?,
        (None, Some(given)) => vec![value(given)?],
        (None, None) if !matches!(operator, Operator::Exists | Operator::NotExists) => {
            return Err(Failure::invalid_values(format_args!(
                "Value or AttributeValueList must be used with ComparisonOperator: {} for Attribute: {name}",
                operator.name()
            )));
        }
        (None, None) => Vec::new(),
    };
    operator.check_count(values.len())?;
    operator.check_kinds(&values)?;
    operator.check_together(&values)?;
    Ok(operator.condition(name, values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeport_item::Item;

    fn read(json: &str) -> Result<Option<Condition>, String> {
        let given: Expected<'_> = serde_json::from_str(json).expect("expectations");
        condition(Some(&given), Join::All)
            .map_err(|failure| failure.text().unwrap_or_default().to_owned())
    }

    #[test]
    fn expectations_become_conditions() {
        let item = Item::new().with("a", "x").with("n", 3);
        for (json, expected) in [
            (r#"{"a":{"Value":{"S":"x"}}}"#, true),
            (r#"{"a":{"Value":{"S":"y"}}}"#, false),
            (r#"{"a":{"Value":{"S":"x"},"Exists":true}}"#, true),
            (r#"{"a":{"Exists":false}}"#, false),
            (r#"{"b":{"Exists":false}}"#, true),
            (
                r#"{"n":{"ComparisonOperator":"GT","Value":{"N":"2"}}}"#,
                true,
            ),
            (
                r#"{"n":{"ComparisonOperator":"BETWEEN","AttributeValueList":[{"N":"1"},{"N":"2"}]}}"#,
                false,
            ),
            (
                r#"{"b":{"ComparisonOperator":"NULL"},"a":{"ComparisonOperator":"NOT_NULL"}}"#,
                true,
            ),
        ] {
            let condition = read(json).expect("valid").expect("a condition");
            assert_eq!(condition.matches(&item), Ok(expected), "{json}");
        }
        assert_eq!(read("{}"), Ok(None));
    }

    #[test]
    fn contradictory_expectations_are_rejected() {
        for (json, text) in [
            (
                r#"{"a":{"Exists":true,"ComparisonOperator":"NULL"}}"#,
                "Exists and ComparisonOperator cannot be used together for Attribute: a",
            ),
            (
                r#"{"a":{"Value":{"S":"x"},"AttributeValueList":[]}}"#,
                "Value and AttributeValueList cannot be used together for Attribute: a",
            ),
            (
                r#"{"a":{"AttributeValueList":[{"S":"x"}]}}"#,
                "AttributeValueList can only be used with a ComparisonOperator for Attribute: a",
            ),
            (
                r#"{"a":{"ComparisonOperator":"EQ"}}"#,
                "Value or AttributeValueList must be used with ComparisonOperator: EQ for Attribute: a",
            ),
            (
                r#"{"a":{"ComparisonOperator":"EQ","AttributeValueList":[]}}"#,
                "Invalid number of argument(s) for the EQ ComparisonOperator",
            ),
            (
                r#"{"a":{"ComparisonOperator":"equals","Value":{"S":"x"}}}"#,
                "Invalid comparison operator",
            ),
            (
                r#"{"a":{"Exists":true}}"#,
                "Value must be provided when Exists is true for Attribute: a",
            ),
            (
                r#"{"a":{}}"#,
                "Value must be provided when Exists is null for Attribute: a",
            ),
            (
                r#"{"a":{"Exists":false,"Value":{"S":"x"}}}"#,
                "Value cannot be used when Exists is false for Attribute: a",
            ),
            (
                r#"{"a":{"ComparisonOperator":"IN","AttributeValueList":[{"S":"x"},{"BOOL":true}]}}"#,
                "ComparisonOperator IN is not valid for BOOL AttributeValue type",
            ),
            (
                r#"{"a":{"ComparisonOperator":"BEGINS_WITH","Value":{"N":"1"}}}"#,
                "ComparisonOperator BEGINS_WITH is not valid for N AttributeValue type",
            ),
            (
                r#"{"a":{"ComparisonOperator":"NOT_CONTAINS","AttributeValueList":[{"L":[]}]}}"#,
                "ComparisonOperator NOT_CONTAINS is not valid for L AttributeValue type",
            ),
            (
                r#"{"a":{"ComparisonOperator":"BETWEEN","AttributeValueList":[{"NS":["1"]},{"NS":["2"]}]}}"#,
                "ComparisonOperator BETWEEN is not valid for NS AttributeValue type",
            ),
        ] {
            let expected = format!("One or more parameter values were invalid: {text}");
            assert_eq!(read(json), Err(expected), "{json}");
        }
        assert_eq!(
            read(r#"{"a":{"Value":{}}}"#),
            Err("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes".to_owned())
        );
    }
}
