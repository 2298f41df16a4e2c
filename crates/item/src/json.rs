//! DynamoDB's JSON form of values (`{"S": "text"}`, `{"N": "1"}`, …), read and written through
//! serde without building a JSON tree in between.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::item::{Item, Map};
use crate::number::Number;
use crate::set::Set;
use crate::value::{Value, ValueKind};

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        let name = self.kind().name();
        match self {
            Self::S(text) => map.serialize_entry(name, text)?,
            Self::N(number) => map.serialize_entry(name, number)?,
            Self::B(bytes) => map.serialize_entry(name, &Base64(bytes))?,
            Self::Bool(value) => map.serialize_entry(name, value)?,
            Self::Null => map.serialize_entry(name, &true)?,
            Self::M(members) => map.serialize_entry(name, members)?,
            Self::L(list) => map.serialize_entry(name, list)?,
            Self::Ss(set) => map.serialize_entry(name, set.as_slice())?,
            Self::Ns(set) => map.serialize_entry(name, set.as_slice())?,
            Self::Bs(set) => {
                let members: Vec<_> = set.iter().map(|bytes| Base64(bytes)).collect();
                map.serialize_entry(name, &members)?;
            }
        }
        map.end()
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Item {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.attributes().serialize(serializer)
    }
}

struct Base64<'a>(&'a [u8]);

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(self.0))
    }
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Self::from)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

struct Bytes(Vec<u8>);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        STANDARD
            .decode(text.as_bytes())
            .map(Self)
            .map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an attribute value with exactly one type")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let name: std::borrow::Cow<'de, str> = map.next_key()?.ok_or_else(|| {
            de::Error::custom("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
        })?;
        let kind = ValueKind::from_name(&name)
            .ok_or_else(|| de::Error::custom("Supplied AttributeValue has an unknown datatype"))?;
        let value = match kind {
            ValueKind::S => Value::S(map.next_value()?),
            ValueKind::N => Value::N(map.next_value()?),
            ValueKind::B => Value::B(map.next_value::<Bytes>()?.0),
            ValueKind::Bool => Value::Bool(map.next_value()?),
            ValueKind::Null => {
                if !map.next_value::<bool>()? {
                    return Err(de::Error::custom(
                        "Null attribute value types must have the value of true",
                    ));
                }
                Value::Null
            }
            ValueKind::M => Value::M(map.next_value()?),
            ValueKind::L => Value::L(map.next_value()?),
            ValueKind::Ss => Value::Ss(Set::new(map.next_value()?).map_err(de::Error::custom)?),
            ValueKind::Ns => Value::Ns(Set::new(map.next_value()?).map_err(de::Error::custom)?),
            ValueKind::Bs => {
                let members: Vec<Bytes> = map.next_value()?;
                let members = members.into_iter().map(|bytes| bytes.0).collect();
                Value::Bs(Set::new(members).map_err(de::Error::custom)?)
            }
        };
        if map.next_key::<de::IgnoredAny>()?.is_some() {
            return Err(de::Error::custom(
                "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes",
            ));
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::arbitrary::any_item;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_item_round_trips(item in any_item()) {
            let text = serde_json::to_string(&item).expect("serialises");
            prop_assert_eq!(serde_json::from_str::<Item>(&text).expect("parses"), item);
        }
    }

    #[test]
    fn values_look_as_in_the_aws_documentation() {
        let item = Item::new()
            .with("B", Value::B(b"hi".to_vec()))
            .with("N", 5)
            .with("Nul", Value::Null)
            .with("Ss", Value::string_set(["b", "a"]).expect("a set"));
        assert_eq!(
            serde_json::to_string(&item).expect("serialises"),
            r#"{"B":{"B":"aGk="},"N":{"N":"5"},"Nul":{"NULL":true},"Ss":{"SS":["a","b"]}}"#
        );
    }

    #[test]
    fn malformed_values_are_refused() {
        for text in [
            "{}",
            r#"{"X":"1"}"#,
            r#"{"S":"a","N":"1"}"#,
            r#"{"N":"one"}"#,
            r#"{"N":1}"#,
            r#"{"SS":[]}"#,
            r#"{"NS":["1","1.0"]}"#,
            r#"{"NULL":false}"#,
            r#"{"B":"not base64!"}"#,
        ] {
            assert!(serde_json::from_str::<Value>(text).is_err(), "{text}");
        }
    }
}
