//! Values as DynamoDB stores them, for the actions that write to tables.

use homeport_item::item::ItemError;
use homeport_item::value::DEPTH_MAX;
use homeport_item::{Item, Map, NumberError, Value as AttributeValue};

use crate::object::Object;
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
        let map = members(object, 0).map_err(Refusal::named)?;
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
        convert(self, 0).map_err(Refusal::named)
    }
}

/// What cannot be stored. Its path is put together on the way out, so that it costs nothing where
/// all is well.
struct Refusal {
    /// The names and indices around the value, from the innermost.
    path: Vec<String>,
    /// None where it nests too deep.
    number: Option<NumberError>,
}

impl Refusal {
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

fn convert(value: &Value, depth: usize) -> Result<AttributeValue, Refusal> {
    let refuse = |number| Refusal {
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
                        .map_err(|refusal| refusal.within(format!("[{index}]")))
                })
                .collect::<Result<_, _>>()?,
        ),
        Value::Object(object) => AttributeValue::M(members(object, depth + 1)?),
    })
}

fn members(object: &Object, depth: usize) -> Result<Map, Refusal> {
    object
        .iter()
        .filter(|(_, value)| !value.is_undefined())
        .map(|(name, value)| {
            let value =
                convert(value, depth).map_err(|refusal| refusal.within(format!(".{name}")))?;
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
