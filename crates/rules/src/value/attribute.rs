//! Converts values to DynamoDB attributes, for actions that write to tables.

use homeport_item::item::ItemError;
use homeport_item::value::DEPTH_MAX;
use homeport_item::{Item, Map, NumberError, Value as AttributeValue};

use crate::value::object::Object;
use crate::value::{Kind, Value};

/// Why a value cannot be stored, and the path of the invalid part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttributeError {
    #[error("the result is {0}; only an object can be stored as an item")]
    NotAnObject(Kind),
    #[error("the value is Undefined")]
    Undefined,
    #[error("the number at {path:?} cannot be stored")]
    Number {
        path: String,
        #[source]
        source: NumberError,
    },
    #[error("the value at {path:?} exceeds DynamoDB's nesting limit")]
    TooDeep { path: String },
    #[error("the item cannot be stored")]
    Item(#[from] ItemError),
}

impl Value {
    /// Converts an object to an item with one attribute per member. Numbers stay exact, null
    /// becomes DynamoDB's NULL, and Undefined members are left out.
    ///
    /// # Errors
    /// When the value is not an object, or a part of it cannot be stored.
    pub fn to_item(&self) -> Result<Item, AttributeError> {
        let Self::Object(object) = self else {
            return Err(AttributeError::NotAnObject(self.kind()));
        };
        let map = members(object, 0).map_err(UnstorableValue::named)?;
        let item = Item::from(map);
        item.check()?;
        Ok(item)
    }

    /// Converts the value to an attribute value.
    ///
    /// # Errors
    /// When the value is Undefined, or a part of it cannot be stored.
    pub fn to_attribute(&self) -> Result<AttributeValue, AttributeError> {
        if self.is_undefined() {
            return Err(AttributeError::Undefined);
        }
        convert(self, 0).map_err(UnstorableValue::named)
    }
}

/// The part that cannot be stored. Its path is built while the error is returned, so a successful
/// conversion pays nothing for it.
struct UnstorableValue {
    /// The names and indexes around the value, innermost first.
    path: Vec<String>,
    /// `None` if the value is nested too deeply.
    number: Option<NumberError>,
}

impl UnstorableValue {
    fn within(mut self, segment: String) -> Self {
        self.path.push(segment);
        self
    }

    fn named(self) -> AttributeError {
        let path: String = self.path.into_iter().rev().collect();
        let path = path.trim_start_matches('.').to_owned();
        match self.number {
            Some(source) => AttributeError::Number { path, source },
            None => AttributeError::TooDeep { path },
        }
    }
}

fn convert(value: &Value, depth: usize) -> Result<AttributeValue, UnstorableValue> {
    let refuse = |number| UnstorableValue {
        path: Vec::new(),
        number,
    };
    if depth > DEPTH_MAX {
        return Err(refuse(None));
    }
    Ok(match value {
        Value::Undefined | Value::Null => AttributeValue::Null,
        Value::Boolean(value) => AttributeValue::Bool(*value),
        Value::Int(number) | Value::Decimal(number) => {
            let number = (*number).try_into();
            AttributeValue::N(number.map_err(|error| refuse(Some(error)))?)
        }
        Value::String(text) => AttributeValue::S(text.clone()),
        Value::Bytes(bytes) => AttributeValue::B(bytes.clone()),
        Value::Array(elements) => AttributeValue::L(
            elements
                .iter()
                .filter(|element| !element.is_undefined())
                .enumerate()
                .map(|(index, element)| {
                    convert(element, depth + 1)
                        .map_err(|invalid| invalid.within(format!("[{index}]")))
                })
                .collect::<Result<_, _>>()?,
        ),
        Value::Object(object) => AttributeValue::M(members(object, depth + 1)?),
    })
}

fn members(object: &Object, depth: usize) -> Result<Map, UnstorableValue> {
    object
        .iter()
        .filter(|(_, value)| !value.is_undefined())
        .map(|(name, value)| {
            let value =
                convert(value, depth).map_err(|invalid| invalid.within(format!(".{name}")))?;
            Ok((name.to_owned(), value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str) -> Value {
        Value::from_json(json).expect("JSON")
    }

    #[test]
    fn object_becomes_item_with_exact_numbers() {
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
    fn unstorable_value_is_reported_with_its_path() {
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
    fn undefined_members_are_left_out() {
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
