//! JSON objects as structs. Serde would accept an array as well, with the fields in their order, and ignore members
//! that the struct does not have. Both are more likely a client's mistake, so both are rejected.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer, StringDeserializer};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

use crate::unknown_name::UnknownName;

/// A struct that is accepted only as an object with no other members.
#[derive(Debug)]
pub struct Object<T>(pub T);

/// A member's name; borrowed if it has no escapes. Serde never borrows a plain `Cow` in a tuple.
#[derive(Debug, serde::Deserialize)]
#[serde(transparent)]
pub struct MemberName<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// For a field that is a struct.
///
/// # Errors
/// If the value is not an object, or has an unknown member.
pub fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_map(ObjectVisitor(PhantomData))
}

/// For an optional field that is a struct or null.
///
/// # Errors
/// As for [`deserialize`].
pub fn optional<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let object = Option::<Object<T>>::deserialize(deserializer)?;
    Ok(object.map(|Object(inner)| inner))
}

/// For an optional field that is a struct and never null.
///
/// # Errors
/// As for [`deserialize`].
pub fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    deserialize(deserializer).map(Some)
}

/// For a field that is a list of structs.
///
/// # Errors
/// As for [`deserialize`].
pub fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let objects = Vec::<Object<T>>::deserialize(deserializer)?;
    Ok(objects.into_iter().map(|Object(inner)| inner).collect())
}

/// For a field where null differs from an absent field: null becomes `Some(None)`.
///
/// # Errors
/// If the value is neither null nor a `T`.
pub fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer).map(Self)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, members: M) -> Result<T, M::Error> {
        T::deserialize(MembersDeserializer(members))
    }
}

/// Deserializes a struct from the members of an object.
struct MembersDeserializer<M>(M);

impl<'de, M: MapAccess<'de>> Deserializer<'de> for MembersDeserializer<M> {
    type Error = M::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, M::Error> {
        visitor.visit_map(KnownMembers {
            members: self.0,
            known,
        })
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, M::Error> {
        visitor.visit_map(self.0)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, M::Error> {
        MapAccessDeserializer::new(self.0).deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map identifier ignored_any
    }
}

/// The members of an object, which fail at the first one whose name is not known.
struct KnownMembers<M> {
    members: M,
    known: &'static [&'static str],
}

impl<'de, M: MapAccess<'de>> MapAccess<'de> for KnownMembers<M> {
    type Error = M::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, M::Error> {
        let Some(MemberName(name)) = self.members.next_key()? else {
            return Ok(None);
        };
        if !self.known.contains(&&*name) {
            let unknown = UnknownName::new("member", &name, self.known.iter().copied());
            return Err(M::Error::custom(unknown));
        }
        match name {
            Cow::Borrowed(name) => seed.deserialize(BorrowedStrDeserializer::new(name)),
            Cow::Owned(name) => seed.deserialize(StringDeserializer::new(name)),
        }
        .map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, M::Error> {
        self.members.next_value_seed(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        self.members.size_hint()
    }
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

    #[derive(Debug, serde::Deserialize)]
    struct Nested<'a> {
        #[serde(borrow, deserialize_with = "list")]
        pairs: Vec<Pair<'a>>,
    }

    #[test]
    fn structs_are_objects_and_not_arrays() {
        let Object(pair) =
            serde_json::from_str::<Object<Pair<'_>>>(r#"{"value": 1.50, "n\u0061me": "a"}"#)
                .unwrap();
        assert_eq!((pair.name, pair.value.get()), (Some("a"), "1.50"));
        for text in [r#"["a", 1.5]"#, "[]", "null", "1", "\"a\"", "{}"] {
            assert!(
                serde_json::from_str::<Object<Pair<'_>>>(text).is_err(),
                "{text}"
            );
        }
    }

    #[test]
    fn unknown_members_are_rejected_with_their_place() {
        let error = serde_json::from_str::<Object<Pair<'_>>>(r#"{"value": 1, "nmae": "a"}"#);
        assert_eq!(
            error.unwrap_err().to_string(),
            "unknown member `nmae` (did you mean `name`?) at line 1 column 19"
        );
        let nested = r#"{"pairs": [{"value": 1}, {"valeu": 1}]}"#;
        let error = serde_json::from_str::<Object<Nested<'_>>>(nested).unwrap_err();
        assert!(error.to_string().contains("`valeu`"), "{error}");
        let corrected = nested.replace("eu", "ue");
        let corrected = serde_json::from_str::<Object<Nested<'_>>>(&corrected);
        let Object(nested) = corrected.expect("known members");
        assert_eq!(nested.pairs.len(), 2);
    }

    #[test]
    fn maps_keep_all_members() {
        type Map = serde_json::Map<String, serde_json::Value>;
        let Object(map) = serde_json::from_str::<Object<Map>>(r#"{"anything": 1}"#).unwrap();
        assert_eq!(map["anything"], 1);
    }
}
