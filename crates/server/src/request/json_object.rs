//! JSON objects as structs. Serde would accept an array as well, with the fields in their order.
//! Nothing documents that form, and a client is more likely to send it by mistake.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// A struct that is accepted only as an object.
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

/// For an optional field that is a struct.
pub(crate) fn optional<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let object = Option::<Object<T>>::deserialize(deserializer)?;
    Ok(object.map(|Object(inner)| inner))
}

/// For a field where null differs from an absent field: null becomes `Some(None)`.
pub(crate) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
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
    fn structs_are_objects_and_not_arrays() {
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
