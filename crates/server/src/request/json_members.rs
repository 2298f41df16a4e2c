//! A JSON object as a list of its members, for code that visits them in order and needs no map.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use homeport_systems::json_object::MemberName;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

/// Names and values in the order in which they were sent.
pub(crate) struct Members<'a, T>(pub(crate) Vec<(Cow<'a, str>, T)>);

impl<T> Default for Members<'_, T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for Members<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor<'a, T>(PhantomData<(&'a (), T)>);

        impl<'de: 'a, 'a, T: Deserialize<'de>> Visitor<'de> for MembersVisitor<'a, T> {
            type Value = Members<'a, T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a map")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut members = Vec::new();
                while let Some((MemberName(name), value)) = map.next_entry()? {
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_and_borrow_names() {
        let Members(members) =
            serde_json::from_str::<Members<'_, u8>>(r#"{"b": 1, "a\u0041": 2, "b": 3}"#).unwrap();
        let read: Vec<_> = members.iter().map(|(name, at)| (&**name, *at)).collect();
        assert_eq!(read, [("b", 1), ("aA", 2), ("b", 3)]);
        assert!(matches!(members[0].0, Cow::Borrowed(_)));
        assert!(serde_json::from_str::<Members<'_, u8>>("[1]").is_err());
    }
}
