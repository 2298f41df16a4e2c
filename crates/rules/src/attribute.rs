//! Values as DynamoDB stores them, for the actions that write to tables.

use homeport_item::item::ItemError;
use homeport_item::value::DEPTH_MAX;
use homeport_item::{Item, Map, NumberError, Value as AttributeValue};

use crate::value::{Kind, Value};

/// Why a value cannot be stored, and which part of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttributeError {
    #[error("the result is {0}, and only an object has attributes")]
    NotAnObject(Kind),
    #[error("there is no value: it is Undefined")]
    Undefined,
    #[error("the number at {path:?} cannot be stored")]
    Number {
        path: String,
        #[source]
        source: NumberError,
    },
    #[error("the value at {path:?} nests deeper than DynamoDB allows")]
    TooDeep { path: String },
    #[error("the item cannot be stored")]
    Item(#[from] ItemError),
}

impl Value {
    /// The object as an item, one attribute for each member. Numbers are exact, null is DynamoDB's
    /// NULL, and what is Undefined is left out.
    ///
    /// # Errors
    /// When this is no object, or something in it cannot be stored.
    pub fn to_item(&self) -> Result<Item, AttributeError> {
        let Self::Object(object) = self else {
            return Err(AttributeError::NotAnObject(self.kind()));
        };
        let mut map = Map::new();
        for (name, value) in object.iter().filter(|(_, value)| !value.is_undefined()) {
            map.insert(name.to_owned(), convert(value, name, 0)?);
        }
        let item = Item::from(map);
        item.check()?;
        Ok(item)
    }

    /// The value as that of one attribute.
    ///
    /// # Errors
    /// When it is Undefined, or something in it cannot be stored.
    pub fn to_attribute(&self) -> Result<AttributeValue, AttributeError> {
        if self.is_undefined() {
            return Err(AttributeError::Undefined);
        }
        convert(self, "", 0)
    }
}

fn convert(value: &Value, path: &str, depth: usize) -> Result<AttributeValue, AttributeError> {
    if depth > DEPTH_MAX {
        let path = path.to_owned();
        return Err(AttributeError::TooDeep { path });
    }
    Ok(match value {
        Value::Undefined | Value::Null => AttributeValue::Null,
        Value::Boolean(value) => AttributeValue::Bool(*value),
        Value::Int(number) | Value::Decimal(number) => {
            let number = (*number)
                .try_into()
                .map_err(|source| AttributeError::Number {
                    path: path.to_owned(),
                    source,
                })?;
            AttributeValue::N(number)
        }
        Value::String(text) => AttributeValue::S(text.clone()),
        Value::Bytes(bytes) => AttributeValue::B(bytes.clone()),
        Value::Array(elements) => AttributeValue::L(
            elements
                .iter()
                .filter(|element| !element.is_undefined())
                .enumerate()
                .map(|(index, element)| convert(element, &format!("{path}[{index}]"), depth + 1))
                .collect::<Result<_, _>>()?,
        ),
        Value::Object(object) => {
            let mut map = Map::new();
            for (name, value) in object.iter().filter(|(_, value)| !value.is_undefined()) {
                let path = format!("{path}.{name}");
                map.insert(name.to_owned(), convert(value, &path, depth + 1)?);
            }
            AttributeValue::M(map)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str) -> Value {
        Value::from_json(json).expect("JSON")
    }

    #[test]
    fn an_object_becomes_an_item_with_exact_numbers() {
        let item = value(
            r#"{"s":"x","n":12345678901234567890.123456789,"b":true,"z":null,"l":[1,{"k":"v"}],"m":{}}"#,
        )
        .to_item()
        .expect("an item");
        let number = item.get("n").and_then(AttributeValue::as_number);
        assert_eq!(
            number.map(ToString::to_string).as_deref(),
            Some("12345678901234567890.123456789")
        );
        assert_eq!(item.get("z"), Some(&AttributeValue::Null));
        assert_eq!(item.get("b"), Some(&AttributeValue::Bool(true)));
        let list = item
            .get("l")
            .and_then(AttributeValue::as_list)
            .expect("a list");
        assert_eq!(
            list[1].as_map().and_then(|map| map.get("k")),
            Some(&"v".into())
        );
        assert_eq!(item.get("m"), Some(&AttributeValue::M(Map::new())));
    }

    #[test]
    fn what_dynamodb_cannot_hold_is_an_error_with_its_place() {
        assert_eq!(
            value("[1]").to_item(),
            Err(AttributeError::NotAnObject(Kind::Array))
        );
        assert_eq!(
            value(r#"{"a":{"b":[1,1e200]}}"#).to_item(),
            Err(AttributeError::Number {
                path: "a.b[1]".to_owned(),
                source: NumberError::Overflow
            })
        );
        let deep = format!(r#"{{"a":{}1{}}}"#, "[".repeat(32), "]".repeat(32));
        assert!(matches!(
            value(&deep).to_item(),
            Err(AttributeError::TooDeep { .. })
        ));
        assert_eq!(
            value(r#"{"":1}"#).to_item(),
            Err(AttributeError::Item(ItemError::EmptyName))
        );
        assert_eq!(
            Value::Undefined.to_attribute(),
            Err(AttributeError::Undefined)
        );
    }

    #[test]
    fn undefined_members_are_no_attributes() {
        let object = [("a", Value::Undefined), ("b", Value::from(1))];
        let item = Value::Object(object.into_iter().collect())
            .to_item()
            .expect("an item");
        assert_eq!(item.len(), 1);
        assert_eq!(
            Value::Bytes(vec![1]).to_attribute(),
            Ok(AttributeValue::B(vec![1]))
        );
    }
}
