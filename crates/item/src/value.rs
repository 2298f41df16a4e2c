//! The ten attribute types and the rules that apply to every value.

use crate::map::Map;
use crate::number::{Number, NumberError};
use crate::set::{Set, SetError};

/// Maximum number of lists and maps around a value, which is then on the 32nd level.
pub const DEPTH_MAX: usize = 31;
/// Maximum nesting of a stored value when it is decoded. One more than `DEPTH_MAX`, so that every
/// value stored by an older version stays readable.
pub(crate) const READ_DEPTH_MAX: usize = 32;
/// Bytes that DynamoDB adds to the item size for each list or map.
const CONTAINER_OVERHEAD_BYTES: usize = 3;
/// Bytes that DynamoDB adds to the item size for each element of a list or map.
const ELEMENT_OVERHEAD_BYTES: usize = 1;

/// An attribute value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Value {
    S(String),
    N(Number),
    B(Vec<u8>),
    Bool(bool),
    Null,
    M(Map),
    L(Vec<Value>),
    Ss(Set<String>),
    Ns(Set<Number>),
    Bs(Set<Vec<u8>>),
}

/// The type of a value, without the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ValueKind {
    S,
    N,
    B,
    Bool,
    Null,
    M,
    L,
    Ss,
    Ns,
    Bs,
}

/// Why a value is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    #[error(transparent)]
    Number(#[from] NumberError),
    #[error(transparent)]
    Set(#[from] SetError),
    #[error("Nesting Levels have exceeded supported limits")]
    TooDeep,
}

impl ValueKind {
    /// The type's name in the protocol and in `attribute_type`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::S => "S",
            Self::N => "N",
            Self::B => "B",
            Self::Bool => "BOOL",
            Self::Null => "NULL",
            Self::M => "M",
            Self::L => "L",
            Self::Ss => "SS",
            Self::Ns => "NS",
            Self::Bs => "BS",
        }
    }

    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "S" => Self::S,
            "N" => Self::N,
            "B" => Self::B,
            "BOOL" => Self::Bool,
            "NULL" => Self::Null,
            "M" => Self::M,
            "L" => Self::L,
            "SS" => Self::Ss,
            "NS" => Self::Ns,
            "BS" => Self::Bs,
            _ => return None,
        })
    }
}

impl Value {
    #[must_use]
    pub fn kind(&self) -> ValueKind {
        match self {
            Self::S(_) => ValueKind::S,
            Self::N(_) => ValueKind::N,
            Self::B(_) => ValueKind::B,
            Self::Bool(_) => ValueKind::Bool,
            Self::Null => ValueKind::Null,
            Self::M(_) => ValueKind::M,
            Self::L(_) => ValueKind::L,
            Self::Ss(_) => ValueKind::Ss,
            Self::Ns(_) => ValueKind::Ns,
            Self::Bs(_) => ValueKind::Bs,
        }
    }

    /// Creates a string set.
    ///
    /// # Errors
    /// When `members` is empty or contains duplicates.
    pub fn string_set<S: Into<String>>(
        members: impl IntoIterator<Item = S>,
    ) -> Result<Self, SetError> {
        Set::new(members.into_iter().map(Into::into).collect()).map(Self::Ss)
    }

    /// The value's share of the item size, as DynamoDB counts it.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::S(text) => text.len(),
            Self::N(number) => number.size(),
            Self::B(bytes) => bytes.len(),
            Self::Bool(_) | Self::Null => 1,
            Self::M(map) => {
                CONTAINER_OVERHEAD_BYTES
                    + map
                        .iter()
                        .map(|(name, value)| name.len() + value.size() + ELEMENT_OVERHEAD_BYTES)
                        .sum::<usize>()
            }
            Self::L(list) => {
                CONTAINER_OVERHEAD_BYTES
                    + list
                        .iter()
                        .map(|value| value.size() + ELEMENT_OVERHEAD_BYTES)
                        .sum::<usize>()
            }
            Self::Ss(set) => set.iter().map(String::len).sum(),
            Self::Ns(set) => set.iter().map(Number::size).sum(),
            Self::Bs(set) => set.iter().map(Vec::len).sum(),
        }
    }

    /// Levels of nested lists and maps; 0 for a scalar.
    #[must_use]
    pub fn depth(&self) -> usize {
        match self {
            Self::M(map) => 1 + map.values().map(Self::depth).max().unwrap_or(0),
            Self::L(list) => 1 + list.iter().map(Self::depth).max().unwrap_or(0),
            _ => 0,
        }
    }

    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::S(text) => Some(text),
            _ => None,
        }
    }

    #[must_use]
    pub fn as_number(&self) -> Option<&Number> {
        match self {
            Self::N(number) => Some(number),
            _ => None,
        }
    }

    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    #[must_use]
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Self::M(map) => Some(map),
            _ => None,
        }
    }

    #[must_use]
    pub fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::L(list) => Some(list),
            _ => None,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::S(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::S(text)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        Self::N(number)
    }
}

macro_rules! from_integer {
    ($($integer:ty),*) => {$(
        impl From<$integer> for Value {
            fn from(value: $integer) -> Self {
                Self::N(Number::from(value))
            }
        }
    )*};
}
from_integer!(i32, i64, u32, u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_the_documented_rules() {
        let map = Value::M(Map::from([("ab".to_owned(), Value::from("cde"))]));
        for (value, size) in [
            (Value::from("é"), 2),
            (Value::from(0), 1),
            (Value::from(12), 2),
            (Value::from(-12), 3),
            (Value::from(100), 2),
            (Value::B(vec![0; 5]), 5),
            (Value::Bool(true), 1),
            (Value::Null, 1),
            (Value::L(vec![]), 3),
            (Value::L(vec![Value::from("ab")]), 6),
            (map, 9),
            (Value::string_set(["a", "bc"]).expect("a set"), 3),
        ] {
            assert_eq!(value.size(), size, "{value:?}");
        }
    }

    #[test]
    fn depth_counts_lists_and_maps() {
        let nested = (0..5).fold(Value::from("x"), |inner, _| Value::L(vec![inner]));
        assert_eq!(nested.depth(), 5);
        assert_eq!(Value::Null.depth(), 0);
    }
}

/// Random values for the property tests of this crate.
#[cfg(test)]
pub(crate) mod arbitrary {
    use super::*;
    use crate::item::Item;
    use proptest::collection::{btree_map, btree_set, vec};
    use proptest::prelude::*;

    pub(crate) fn any_number() -> impl Strategy<Value = Number> {
        prop_oneof![
            any::<i64>().prop_map(Number::from),
            (any::<bool>(), 0u128..10u128.pow(38), -130i32..126).prop_filter_map(
                "out of range",
                |(negative, coefficient, exponent)| Number::new(negative, coefficient, exponent)
                    .ok()
            ),
        ]
    }

    pub(crate) fn any_value() -> impl Strategy<Value = Value> {
        let set = |members: std::collections::BTreeSet<String>| {
            Value::string_set(members).expect("at least one, none twice")
        };
        let leaf = prop_oneof![
            "\\PC{0,12}".prop_map(Value::S),
            any_number().prop_map(Value::N),
            vec(any::<u8>(), 0..12).prop_map(Value::B),
            any::<bool>().prop_map(Value::Bool),
            Just(Value::Null),
            btree_set("[a-z]{1,4}", 1..4).prop_map(set),
            btree_set(any::<i32>(), 1..4).prop_map(|members| Value::Ns(
                Set::new(members.into_iter().map(Number::from).collect()).expect("a set")
            )),
            btree_set(vec(any::<u8>(), 0..4), 1..4).prop_map(|members| Value::Bs(
                Set::new(members.into_iter().collect()).expect("a set")
            )),
        ];
        leaf.prop_recursive(4, 24, 5, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..5).prop_map(Value::L),
                btree_map("[a-z]{0,6}", inner, 0..5)
                    .prop_map(|entries| Value::M(entries.into_iter().collect())),
            ]
        })
    }

    pub(crate) fn any_item() -> impl Strategy<Value = Item> {
        btree_map("[a-z]{1,6}", any_value(), 0..8)
            .prop_map(|entries| entries.into_iter().collect::<Item>())
    }
}
