//! `AttributeUpdates`: the actions of an update, by attribute.

use homeport_item::expression::{Path, Update, UpdateError, UpdateOperand};
use homeport_item::item::ITEM_SIZE_MAX_BYTES;
use homeport_item::{Value, ValueKind};
use homeport_store::{InvalidRequest, StoreError, WriteError};
use serde::Deserialize;

use super::conditions::value;
use crate::failure::Failure;
use crate::input::{Attribute, Element, Mapping, Named, Text};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct UpdateInput<'a> {
    #[serde(borrow)]
    action: Option<Text<'a>>,
    value: Option<Attribute>,
}

impl Named for UpdateInput<'_> {
    const NAME: &'static str = "AttributeValueUpdate";
}

/// Updates by attribute name.
pub(crate) type AttributeUpdates<'a> = Mapping<'a, Element<UpdateInput<'a>>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Put,
    Add,
    Delete,
}

/// The updates as one tree.
pub(crate) fn update(given: Option<&AttributeUpdates<'_>>) -> Result<Update, Failure> {
    let given = given.map_or(&[][..], |given| &given.0);
    let mut checked = Vec::with_capacity(given.len());
    for (name, Element(update)) in given {
        checked.push((
            name.as_ref(),
            update,
            update.value.as_ref().map(value).transpose()?,
        ));
    }
    let mut actions = Vec::with_capacity(given.len());
    for (name, update, value) in checked {
        actions.push((name, action(update.action.as_ref())?, value));
    }
    let mut update = Update::new();
    let mut added_bytes = 0;
    for (name, action, value) in actions {
        if let Some(value) = &value {
            added_bytes += name.len() + value.size();
        }
        update = extend(update, name, action, value)?;
    }
    // No item could hold the result, so the update does not reach the committer.
    if added_bytes > ITEM_SIZE_MAX_BYTES {
        return Err(Failure::validation(
            "Item size to update has exceeded the maximum allowed size",
        ));
    }
    Ok(update)
}

fn action(given: Option<&Text<'_>>) -> Result<Action, Failure> {
    match given.map(Text::as_str) {
        None | Some("PUT") => Ok(Action::Put),
        Some("ADD") => Ok(Action::Add),
        Some("DELETE") => Ok(Action::Delete),
        // The stray quote is DynamoDB's.
        Some(_) => Err(Failure::validation(
            "Member must satisfy enum value set: [ADD, DELETE, PUT]' for Action",
        )),
    }
}

fn extend(
    update: Update,
    name: &str,
    action: Action,
    value: Option<Value>,
) -> Result<Update, Failure> {
    let is_set = |kind| matches!(kind, ValueKind::Ss | ValueKind::Ns | ValueKind::Bs);
    let refused = |text: &str, kind: ValueKind| {
        Err(Failure::invalid_values(format_args!(
            "{text} is not supported for the type {}",
            kind.name()
        )))
    };
    let Some(value) = value else {
        return match action {
            Action::Delete => Ok(update.remove(name)),
            Action::Put | Action::Add => Err(Failure::invalid_values(
                "Only DELETE action is allowed when no attribute value is specified",
            )),
        };
    };
    let kind = value.kind();
    match action {
        Action::Put => Ok(update.set(name, value)),
        Action::Delete if is_set(kind) => Ok(update.delete(name, value)),
        Action::Delete => refused("DELETE action with value", kind),
        // Expressions can add only to numbers and sets. Adding to a list appends to it.
        Action::Add if kind == ValueKind::L => {
            let list = UpdateOperand::if_not_exists(Path::new(name), Value::L(Vec::new()));
            Ok(update.set(name, UpdateOperand::list_append(list, value)))
        }
        Action::Add if kind == ValueKind::N || is_set(kind) => Ok(update.add(name, value)),
        Action::Add => refused("ADD action", kind),
    }
}

/// The failure of a write with this parameter, which has a text of its own for values of the wrong type.
pub(crate) fn failure(error: WriteError) -> Failure {
    match error {
        WriteError::Store(StoreError::Invalid(InvalidRequest::Update(UpdateError::WrongType))) => {
            Failure::validation("Type mismatch for attribute to update")
        }
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeport_item::Item;

    fn read(json: &str) -> Result<Update, String> {
        let given: AttributeUpdates<'_> = serde_json::from_str(json).expect("updates");
        update(Some(&given)).map_err(|failure| failure.text().unwrap_or_default().to_owned())
    }

    fn applied(json: &str) -> Item {
        let mut item: Item = serde_json::from_str(
            r#"{"n":{"N":"1"},"s":{"SS":["a","b"]},"l":{"L":[{"N":"1"}]},"t":{"S":"x"}}"#,
        )
        .expect("an item");
        let update = read(json).expect("valid");
        update.check().expect("a valid tree");
        update.apply(&mut item).expect("it fits");
        item
    }

    #[test]
    fn actions_work_as_in_dynamodb() {
        for (json, name, expected) in [
            (r#"{"t":{"Value":{"S":"y"}}}"#, "t", r#"{"S":"y"}"#),
            (
                r#"{"t":{"Action":"PUT","Value":{"BOOL":true}}}"#,
                "t",
                r#"{"BOOL":true}"#,
            ),
            (
                r#"{"n":{"Action":"ADD","Value":{"N":"2"}}}"#,
                "n",
                r#"{"N":"3"}"#,
            ),
            (
                r#"{"new":{"Action":"ADD","Value":{"N":"2"}}}"#,
                "new",
                r#"{"N":"2"}"#,
            ),
            (
                r#"{"s":{"Action":"ADD","Value":{"SS":["c"]}}}"#,
                "s",
                r#"{"SS":["a","b","c"]}"#,
            ),
            (
                r#"{"l":{"Action":"ADD","Value":{"L":[{"N":"2"}]}}}"#,
                "l",
                r#"{"L":[{"N":"1"},{"N":"2"}]}"#,
            ),
            (
                r#"{"new":{"Action":"ADD","Value":{"L":[{"N":"2"}]}}}"#,
                "new",
                r#"{"L":[{"N":"2"}]}"#,
            ),
            (
                r#"{"s":{"Action":"DELETE","Value":{"SS":["a"]}}}"#,
                "s",
                r#"{"SS":["b"]}"#,
            ),
        ] {
            let expected: Value = serde_json::from_str(expected).expect("a value");
            assert_eq!(applied(json).get(name), Some(&expected), "{json}");
        }
        for json in [
            r#"{"t":{"Action":"DELETE"}}"#,
            r#"{"t":{"Action":"DELETE"},"none":{"Action":"DELETE"}}"#,
        ] {
            assert_eq!(applied(json).get("t"), None, "{json}");
        }
        let emptied = applied(r#"{"s":{"Action":"DELETE","Value":{"SS":["a","b"]}}}"#);
        assert_eq!(emptied.get("s"), None);
    }

    #[test]
    fn invalid_actions_are_rejected() {
        let prefix = "One or more parameter values were invalid: ";
        for (json, text) in [
            (
                r#"{"a":{}}"#,
                format!(
                    "{prefix}Only DELETE action is allowed when no attribute value is specified"
                ),
            ),
            (
                r#"{"a":{"Action":"ADD"}}"#,
                format!(
                    "{prefix}Only DELETE action is allowed when no attribute value is specified"
                ),
            ),
            (
                r#"{"a":{"Action":"ADD","Value":{"S":"x"}}}"#,
                format!("{prefix}ADD action is not supported for the type S"),
            ),
            (
                r#"{"a":{"Action":"DELETE","Value":{"N":"1"}}}"#,
                format!("{prefix}DELETE action with value is not supported for the type N"),
            ),
            (
                r#"{"a":{},"b":{"Action":"put","Value":{"N":"1"}}}"#,
                "Member must satisfy enum value set: [ADD, DELETE, PUT]' for Action".to_owned(),
            ),
            (
                r#"{"b":{"Action":"put"},"a":{"Value":{"N":"x"}}}"#,
                "The parameter cannot be converted to a numeric value: x".to_owned(),
            ),
        ] {
            assert_eq!(read(json), Err(text), "{json}");
        }
        let large = format!(
            r#"{{"a":{{"Value":{{"S":"{}"}}}}}}"#,
            "x".repeat(ITEM_SIZE_MAX_BYTES)
        );
        assert_eq!(
            read(&large),
            Err("Item size to update has exceeded the maximum allowed size".to_owned())
        );
    }

    #[test]
    fn wrong_type_has_text_of_this_parameter() {
        let failed = |error: UpdateError| failure(StoreError::invalid(error).into());
        assert_eq!(
            failed(UpdateError::WrongType).text(),
            Some("Type mismatch for attribute to update")
        );
        assert_eq!(
            failed(UpdateError::MissingAttribute).text(),
            Some(UpdateError::MissingAttribute.to_string().as_str())
        );
    }
}
