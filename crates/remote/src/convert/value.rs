//! Converts items to and from the SDK's types.

use std::collections::HashMap;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use homeport_item::{Item, Number, Set, Value};
use homeport_store::StoreError;

/// An item in the SDK's form.
pub(crate) type Attributes = HashMap<String, AttributeValue>;

pub(crate) fn attributes(item: Item) -> Attributes {
    item.into_iter()
        .map(|(name, value)| (name.into(), attribute(value)))
        .collect()
}

pub(crate) fn attribute(value: Value) -> AttributeValue {
    match value {
        Value::S(text) => AttributeValue::S(text),
        Value::N(number) => AttributeValue::N(number.to_string()),
        Value::B(bytes) => AttributeValue::B(Blob::new(bytes)),
        Value::Bool(value) => AttributeValue::Bool(value),
        Value::Null => AttributeValue::Null(true),
        Value::M(map) => AttributeValue::M(
            map.into_iter()
                .map(|(name, value)| (name.into(), attribute(value)))
                .collect(),
        ),
        Value::L(list) => AttributeValue::L(list.into_iter().map(attribute).collect()),
        Value::Ss(set) => AttributeValue::Ss(set.as_slice().to_vec()),
        Value::Ns(set) => AttributeValue::Ns(set.iter().map(Number::to_string).collect()),
        Value::Bs(set) => AttributeValue::Bs(set.iter().cloned().map(Blob::new).collect()),
    }
}

pub(crate) fn item(attributes: Attributes) -> Result<Item, StoreError> {
    attributes
        .into_iter()
        .map(|(name, attribute)| Ok((name, value(attribute)?)))
        .collect::<Result<Vec<_>, StoreError>>()
        .map(Item::from_iter)
}

fn value(attribute: AttributeValue) -> Result<Value, StoreError> {
    let number = |text: String| text.parse::<Number>().map_err(unreadable);
    Ok(match attribute {
        AttributeValue::S(text) => Value::S(text),
        AttributeValue::N(text) => Value::N(number(text)?),
        AttributeValue::B(bytes) => Value::B(bytes.into_inner()),
        AttributeValue::Bool(value) => Value::Bool(value),
        AttributeValue::Null(_) => Value::Null,
        AttributeValue::M(map) => Value::M(item(map)?.into_attributes()),
        AttributeValue::L(list) => Value::L(list.into_iter().map(value).collect::<Result<_, _>>()?),
        AttributeValue::Ss(members) => Value::Ss(Set::new(members).map_err(unreadable)?),
        AttributeValue::Ns(members) => {
            let members = members.into_iter().map(number).collect::<Result<_, _>>()?;
            Value::Ns(Set::new(members).map_err(unreadable)?)
        }
        AttributeValue::Bs(members) => {
            let members = members.into_iter().map(Blob::into_inner).collect();
            Value::Bs(Set::new(members).map_err(unreadable)?)
        }
        other => return Err(unreadable(format!("unknown attribute type: {other:?}"))),
    })
}

/// An invalid response. DynamoDB never sends one, but a compatible service might.
pub(crate) fn unreadable(reason: impl std::fmt::Display) -> StoreError {
    StoreError::Unavailable(format!("invalid response: {reason}"))
}

#[cfg(test)]
mod tests {
    use homeport_item::Map;

    use super::*;

    #[test]
    fn every_type_round_trips() {
        let number = |text: &str| text.parse::<Number>().expect("a number");
        let all = Item::new()
            .with("s", "text")
            .with("n", number("-1.5E-20"))
            .with("b", Value::B(vec![0, 255]))
            .with("yes", true)
            .with("null", Value::Null)
            .with("m", Value::M(Map::from([("x".to_owned(), Value::from(1))])))
            .with("l", Value::L(vec![Value::from("a"), Value::Null]))
            .with("ss", Value::string_set(["b", "a"]).expect("a set"))
            .with(
                "ns",
                Value::Ns(Set::new(vec![number("2"), number("1")]).expect("a set")),
            )
            .with(
                "bs",
                Value::Bs(Set::new(vec![vec![1], vec![]]).expect("a set")),
            );
        assert_eq!(item(attributes(all.clone())), Ok(all));
    }

    #[test]
    fn invalid_number_is_an_error() {
        let wrong = Attributes::from([("n".to_owned(), AttributeValue::N("one".to_owned()))]);
        assert!(matches!(item(wrong), Err(StoreError::Unavailable(_))));
    }
}
