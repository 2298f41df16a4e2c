//! The expressions of a request: which parameters may be combined, and the names and values of their placeholders.

use homeport_item::Value;
use homeport_item::expression::{Condition, Path, Placeholders, Projection};
use homeport_item::schema::{KeySchema, TableSchema};

use crate::failure::Failure;
use crate::input::{Attribute, Mapping, Text, Wording};

/// The name of a parameter, and whether the request has it.
pub(crate) type Given = (&'static str, bool);

/// `ExpressionAttributeNames` and `ExpressionAttributeValues` of a request.
pub(crate) type GivenNames<'a> = Option<&'a Mapping<'a, Text<'a>>>;
pub(crate) type GivenValues<'a> = Option<&'a Mapping<'a, Attribute>>;

/// Checks that the given parameters may be combined.
///
/// `expressions` can use values; `projections` only use names.
pub(crate) fn check_parameters(
    expressions: &[Given],
    projections: &[Given],
    legacy: &[Given],
    names: bool,
    values: bool,
) -> Result<(), Failure> {
    let given = |parameters: &[Given]| -> Vec<&'static str> {
        parameters
            .iter()
            .filter(|(_, given)| *given)
            .map(|(name, _)| *name)
            .collect()
    };
    let modern = [given(projections), given(expressions)].concat();
    let outdated = given(legacy);
    if !modern.is_empty() && !outdated.is_empty() {
        return Err(Failure::validation(format!(
            "Can not use both expression and non-expression parameters in the same request: Non-expression parameters: {{{}}} Expression parameters: {{{}}}",
            outdated.join(", "),
            modern.join(", ")
        )));
    }
    if names && modern.is_empty() {
        return Err(Failure::validation(
            "ExpressionAttributeNames can only be specified when using expressions",
        ));
    }
    if values && !expressions.iter().any(|(_, given)| *given) {
        let names: Vec<_> = expressions.iter().map(|(name, _)| *name).collect();
        let verb = if names.len() > 1 { "are" } else { "is" };
        let text = "ExpressionAttributeValues can only be specified when using expressions";
        let names = names.join(" and ");
        let failure = Failure::validation(format!("{text}: {names} {verb} null"));
        return Err(failure.with_short_text(text));
    }
    Ok(())
}

/// The placeholders of a request.
pub(crate) fn placeholders(
    names: GivenNames<'_>,
    values: GivenValues<'_>,
    wording: Wording,
) -> Result<Placeholders, Failure> {
    let empty = |name: &str| Failure::validation(format!("{name} must not be empty"));
    if names.is_some_and(|names| names.0.is_empty()) {
        return Err(empty("ExpressionAttributeNames"));
    }
    if values.is_some_and(|values| values.0.is_empty()) {
        return Err(empty("ExpressionAttributeValues"));
    }
    let names = names.map_or(&[][..], |names| &names.0);
    if let Some((key, _)) = names.iter().find(|(_, name)| name.as_str().is_empty()) {
        return Err(Failure::validation(format!(
            "ExpressionAttributeNames contains invalid value: Empty attribute name for key {key}"
        )));
    }
    let values = values.map_or(&[][..], |values| &values.0);
    let placeholders = Placeholders::new(
        names
            .iter()
            .map(|(key, name)| (key.to_string(), name.as_str().to_owned())),
        values.iter().map(|(key, value)| {
            // An invalid value is reported after all keys are checked.
            let value = value.0.clone().unwrap_or(Value::Null);
            (key.to_string(), value)
        }),
    )?;
    let problem = values
        .iter()
        .find_map(|(key, value)| Some((key, value.0.as_ref().err()?)));
    let Some((key, problem)) = problem else {
        return Ok(placeholders);
    };
    if wording == Wording::Newer && problem.omits_parameter() {
        return Err(problem.failure(wording));
    }
    let text = format!(
        "ExpressionAttributeValues contains invalid value: {} for key {key}",
        problem.older()
    );
    Err(problem.failure_with(text).with_short_text(problem.older()))
}

/// Parses an optional condition.
pub(crate) fn condition(
    text: Option<&Text<'_>>,
    placeholders: &mut Placeholders,
) -> Result<Option<Condition>, Failure> {
    match text {
        Some(text) => Ok(Some(Condition::parse(text.as_str(), placeholders)?)),
        None => Ok(None),
    }
}

pub(crate) fn filter(
    text: Option<&Text<'_>>,
    placeholders: &mut Placeholders,
) -> Result<Option<Condition>, Failure> {
    match text {
        Some(text) => Ok(Some(Condition::parse_filter(text.as_str(), placeholders)?)),
        None => Ok(None),
    }
}

pub(crate) fn projection(
    text: Option<&Text<'_>>,
    placeholders: &mut Placeholders,
) -> Result<Option<Projection>, Failure> {
    match text {
        Some(text) => Ok(Some(Projection::parse(text.as_str(), placeholders)?)),
        None => Ok(None),
    }
}

/// Checks that no path leads into a key attribute, which is always a scalar.
pub(crate) fn check_key_paths<'a>(
    schema: &TableSchema,
    paths: impl IntoIterator<Item = &'a Path>,
) -> Result<(), Failure> {
    let refused = |kind: &str, name: &str| {
        Failure::validation(format!(
            "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: {kind}: {name}"
        ))
    };
    for path in paths {
        if path.nested().is_empty() {
            continue;
        }
        if schema.key.has(path.name()) {
            return Err(refused("Key", path.name()));
        }
        let mut keys = schema.indexes.iter().map(|index| &index.key);
        if keys.any(|key: &KeySchema| key.has(path.name())) {
            return Err(refused("IndexKey", path.name()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(result: Result<(), Failure>) -> String {
        result
            .expect_err("refused")
            .text()
            .unwrap_or_default()
            .to_owned()
    }

    #[test]
    fn conflicting_parameters_are_named() {
        let condition = [("ConditionExpression", true)];
        let expected = [("Expected", true)];
        assert_eq!(
            text(check_parameters(&condition, &[], &expected, false, false)),
            "Can not use both expression and non-expression parameters in the same request: Non-expression parameters: {Expected} Expression parameters: {ConditionExpression}"
        );
        assert_eq!(
            text(check_parameters(
                &[("ConditionExpression", false)],
                &[],
                &[],
                true,
                false
            )),
            "ExpressionAttributeNames can only be specified when using expressions"
        );
        assert_eq!(
            text(check_parameters(
                &[("ConditionExpression", false)],
                &[],
                &[],
                false,
                true
            )),
            "ExpressionAttributeValues can only be specified when using expressions: ConditionExpression is null"
        );
        assert_eq!(
            text(check_parameters(
                &[("UpdateExpression", false), ("ConditionExpression", false)],
                &[],
                &[],
                false,
                true
            )),
            "ExpressionAttributeValues can only be specified when using expressions: UpdateExpression and ConditionExpression are null"
        );
        assert!(check_parameters(&condition, &[], &[], true, true).is_ok());
    }

    #[test]
    fn invalid_placeholders_are_rejected() {
        let values = |json: &'static str| -> Mapping<'static, Attribute> {
            serde_json::from_str(json).expect("a map")
        };
        let refused = |json: &'static str| {
            let values = values(json);
            placeholders(None, Some(&values), Wording::Older)
                .expect_err("refused")
                .text()
                .unwrap_or_default()
                .to_owned()
        };
        assert_eq!(refused("{}"), "ExpressionAttributeValues must not be empty");
        assert_eq!(
            refused(r#"{":a":{}}"#),
            "ExpressionAttributeValues contains invalid value: Supplied AttributeValue is empty, must contain exactly one of the supported datatypes for key :a"
        );
        assert_eq!(
            refused(r#"{"a":{}}"#),
            "ExpressionAttributeValues contains invalid key: Syntax error; key: \"a\""
        );
    }
}
