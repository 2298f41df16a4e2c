//! Lists, maps and structures of a request.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::scalars::Text;

/// A type whose name appears in messages.
pub(crate) trait Named {
    /// The name in DynamoDB's API model.
    const NAME: &'static str;
}

const PACKAGE: &str = "com.amazonaws.dynamodb.v20120810.";

#[derive(Debug, Clone)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

/// A map in the order of the request. Of equal keys, the last one counts.
#[derive(Debug, Clone)]
pub(crate) struct Mapping<'a, T>(pub(crate) Vec<(Cow<'a, str>, T)>);

impl<T> List<T> {
    /// The first elements, for the permissions of operations that reject longer lists.
    pub(crate) fn first(&self, len_max: usize) -> &[T] {
        &self.0[..self.0.len().min(len_max)]
    }
}

impl<'a, T> Mapping<'a, T> {
    /// The first entries, for the permissions of operations that reject larger maps.
    pub(crate) fn first(&self, len_max: usize) -> &[(Cow<'a, str>, T)] {
        &self.0[..self.0.len().min(len_max)]
    }
}

/// A structure in a field of another structure.
#[derive(Debug, Clone)]
pub(crate) struct Field<T>(pub(crate) T);

/// A structure within a list or a map.
#[derive(Debug, Clone)]
pub(crate) struct Element<T>(pub(crate) T);

impl Named for Text<'_> {
    const NAME: &'static str = "java.lang.String";
}

impl<T: Named> Named for Element<T> {
    const NAME: &'static str = T::NAME;
}

impl<T: Named> Named for List<T> {
    const NAME: &'static str = "java.util.List";
}

/// Rejects every scalar with the same text.
macro_rules! refuse_scalars {
    ($value:ty, |$visitor:ident| $text:expr) => {
        fn visit_bool<E: Error>(self, _: bool) -> Result<$value, E> {
            let $visitor = self;
            Err(E::custom($text))
        }

        fn visit_i64<E: Error>(self, _: i64) -> Result<$value, E> {
            let $visitor = self;
            Err(E::custom($text))
        }

        fn visit_u64<E: Error>(self, _: u64) -> Result<$value, E> {
            let $visitor = self;
            Err(E::custom($text))
        }

        fn visit_f64<E: Error>(self, _: f64) -> Result<$value, E> {
            let $visitor = self;
            Err(E::custom($text))
        }

        fn visit_str<E: Error>(self, _: &str) -> Result<$value, E> {
            let $visitor = self;
            Err(E::custom($text))
        }
    };
}
pub(super) use refuse_scalars;

pub(super) const UNEXPECTED_FIELD: &str = "Unexpected field type";
pub(super) const UNEXPECTED_ELEMENT: &str = "Unexpected value type in payload";

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_any(ListVisitor(PhantomData))
            .map(Self)
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Vec<T>, A::Error> {
        let mut elements = Vec::new();
        // Null elements count as missing, as null fields do.
        while let Some(element) = sequence.next_element::<Option<T>>()? {
            elements.extend(element);
        }
        Ok(elements)
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<Vec<T>, A::Error> {
        Err(A::Error::custom(
            "Start of structure or map found where not expected",
        ))
    }

    refuse_scalars!(Vec<T>, |_visitor| UNEXPECTED_FIELD);
}

impl<'de: 'a, 'a, T: Deserialize<'de> + Named> Deserialize<'de> for Mapping<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_any(MappingVisitor(PhantomData))
            .map(Self)
    }
}

struct MappingVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + Named> Visitor<'de> for MappingVisitor<T> {
    type Value = Vec<(Cow<'de, str>, T)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries: Self::Value = Vec::new();
        while let Some(Text(key)) = map.next_key()? {
            let Some(value) = map.next_value::<Option<T>>()? else {
                continue;
            };
            entries.push((key, value));
        }
        drop_overwritten(&mut entries);
        Ok(entries)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> {
        let package = if T::NAME.contains('.') { "" } else { PACKAGE };
        Err(A::Error::custom(format_args!(
            "Unrecognized collection type java.util.Map<java.lang.String, {package}{}>",
            T::NAME
        )))
    }

    refuse_scalars!(Self::Value, |_visitor| UNEXPECTED_FIELD);
}

/// Keeps only the last of several entries with the same key, in the time of a sort.
fn drop_overwritten<T>(entries: &mut Vec<(Cow<'_, str>, T)>) {
    if entries.len() < 2 {
        return;
    }
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by(|left, right| {
        entries[*left]
            .0
            .cmp(&entries[*right].0)
            .then(right.cmp(left))
    });
    let mut keep = vec![true; entries.len()];
    for pair in order.windows(2) {
        if entries[pair[0]].0 == entries[pair[1]].0 {
            keep[pair[1]] = false;
        }
    }
    let mut keep = keep.into_iter();
    entries.retain(|_| keep.next().unwrap_or(true));
}

impl<'de, T: Deserialize<'de> + Named> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_any(StructureVisitor {
                scalar: UNEXPECTED_FIELD,
                structure: PhantomData,
            })
            .map(Self)
    }
}

impl<'de, T: Deserialize<'de> + Named> Deserialize<'de> for Element<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_any(StructureVisitor {
                scalar: UNEXPECTED_ELEMENT,
                structure: PhantomData,
            })
            .map(Self)
    }
}

struct StructureVisitor<T> {
    scalar: &'static str,
    structure: PhantomData<T>,
}

impl<'de, T: Deserialize<'de> + Named> Visitor<'de> for StructureVisitor<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a structure")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<T, A::Error> {
        Err(not_a_list(T::NAME))
    }

    refuse_scalars!(T, |visitor| visitor.scalar);
}

pub(super) fn not_a_list<E: Error>(name: &str) -> E {
    E::custom(format_args!(
        "Unrecognized collection type class {PACKAGE}{name}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_of_equal_keys_counts() {
        let mapping: Mapping<'_, Text<'_>> =
            serde_json::from_str(r#"{"a":"1","b":"2","a":"3","c":null}"#).expect("a map");
        let entries: Vec<_> = mapping
            .0
            .iter()
            .map(|(key, value)| (key.as_ref(), value.as_str()))
            .collect();
        assert_eq!(entries, [("b", "2"), ("a", "3")]);
    }
}
