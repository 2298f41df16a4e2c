//! A JSON object read into a struct. Serde would take an array as well, field by field in their
//! order, which no document promises and which a typing error can look like.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// A struct that is written as an object and in no other way.
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Object<T>, M::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

/// For a field that is a struct.
pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Object::deserialize(deserializer).map(|Object(inner)| inner)
}

/// For a field that is a struct or is not there.
pub(crate) fn optional<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let found = Option::<Object<T>>::deserialize(deserializer)?;
    Ok(found.map(|Object(inner)| inner))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    #[derive(Debug, serde::Deserialize)]
    struct Pair<'a> {
        name: Option<&'a str>,
        #[serde(borrow)]
        value: &'a RawValue,
    }

    #[test]
    fn an_object_is_read_and_an_array_is_not() {
        let Object(pair) =
            serde_json::from_str::<Object<Pair<'_>>>(r#"{"value": 1.50, "name": "a"}"#).unwrap();
        assert_eq!((pair.name, pair.value.get()), (Some("a"), "1.50"));
        for text in [r#"["a", 1.5]"#, "[]", "null", "1", "\"a\"", "{}"] {
            assert!(
                serde_json::from_str::<Object<Pair<'_>>>(text).is_err(),
                "{text}"
            );
        }
    }
}
