//! A map from names to values: the attributes of an item, and the contents of a map attribute.
//!
//! The entries are one sorted list. Items have few attributes and are mostly built, read and
//! dropped as a whole, so a list with one allocation is cheaper than a tree of nodes.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use smol_str::SmolStr;

use crate::value::Value;

/// An attribute name. Short names, which are almost all, need no allocation.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(SmolStr);

impl Name {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}

impl From<&str> for Name {
    fn from(name: &str) -> Self {
        Self(SmolStr::new(name))
    }
}

impl From<&String> for Name {
    fn from(name: &String) -> Self {
        Self(SmolStr::new(name))
    }
}

impl From<&Name> for Name {
    fn from(name: &Name) -> Self {
        name.clone()
    }
}

impl From<String> for Name {
    fn from(name: String) -> Self {
        Self(SmolStr::from(name))
    }
}

impl From<std::borrow::Cow<'_, str>> for Name {
    fn from(name: std::borrow::Cow<'_, str>) -> Self {
        Self(SmolStr::from(name))
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0.into()
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

/// Values by name, in ascending order of the names.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Map(Vec<(Name, Value)>);

impl Map {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self(Vec::with_capacity(capacity))
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.0
            .binary_search_by(|(found, _)| found.as_str().cmp(name))
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        let at = self.find(name).ok()?;
        Some(&self.0[at].1)
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        let at = self.find(name).ok()?;
        Some(&mut self.0[at].1)
    }

    #[must_use]
    pub fn contains_key(&self, name: &str) -> bool {
        self.find(name).is_ok()
    }

    /// Inserts a value and returns the previous one. Inserting in ascending order of the names is
    /// cheap; collect a large unsorted list into a map instead.
    pub fn insert(&mut self, name: impl Into<Name>, value: Value) -> Option<Value> {
        let name = name.into();
        if self.0.last().is_none_or(|(last, _)| *last < name) {
            self.0.push((name, value));
            return None;
        }
        match self.find(&name) {
            Ok(at) => Some(std::mem::replace(&mut self.0[at].1, value)),
            Err(at) => {
                self.0.insert(at, (name, value));
                None
            }
        }
    }

    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.find(name).ok()?;
        Some(self.0.remove(at).1)
    }

    /// Keeps only the entries for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&Name, &mut Value) -> bool) {
        self.0.retain_mut(|(name, value)| keep(name, value));
    }

    pub fn iter(&self) -> Iter<'_> {
        Iter(self.0.iter())
    }

    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &Name> + ExactSizeIterator {
        self.0.iter().map(|(name, _)| name)
    }

    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator {
        self.0.iter().map(|(_, value)| value)
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self).finish()
    }
}

impl<N: Into<Name>> FromIterator<(N, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (N, Value)>>(entries: I) -> Self {
        let mut entries: Vec<(Name, Value)> = entries
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect();
        if !entries.is_sorted_by(|(a, _), (b, _)| a < b) {
            // If a name repeats, its last value wins. The sort is stable, so that value is the last
            // of its group, and the first one in the reversed list.
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            entries.reverse();
            entries.dedup_by(|(a, _), (b, _)| a == b);
            entries.reverse();
        }
        Self(entries)
    }
}

impl<N: Into<Name>, const LEN: usize> From<[(N, Value); LEN]> for Map {
    fn from(entries: [(N, Value); LEN]) -> Self {
        entries.into_iter().collect()
    }
}

impl<N: Into<Name>> Extend<(N, Value)> for Map {
    fn extend<I: IntoIterator<Item = (N, Value)>>(&mut self, entries: I) {
        for (name, value) in entries {
            self.insert(name, value);
        }
    }
}

impl IntoIterator for Map {
    type Item = (Name, Value);
    type IntoIter = std::vec::IntoIter<(Name, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Map {
    type Item = (&'a Name, &'a Value);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// The entries of a map, in ascending order of their names.
#[derive(Debug, Clone)]
pub struct Iter<'a>(std::slice::Iter<'a, (Name, Value)>);

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a Name, &'a Value);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(name, value)| (name, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|(name, value)| (name, value))
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl Serialize for Map {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;

        impl Visitor<'_> for NameVisitor {
            type Value = Name;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an attribute's name")
            }

            fn visit_str<E>(self, name: &str) -> Result<Name, E> {
                Ok(Name::from(name))
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}

impl<'de> Deserialize<'de> for Map {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MapVisitor;

        impl<'de> Visitor<'de> for MapVisitor {
            type Value = Map;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a map of attribute values")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Map, A::Error> {
                let mut collected: Vec<(Name, Value)> = Vec::new();
                while let Some(entry) = entries.next_entry()? {
                    collected.push(entry);
                }
                Ok(collected.into_iter().collect())
            }
        }
        deserializer.deserialize_map(MapVisitor)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    type Model = BTreeMap<String, Value>;

    fn same(map: &Map, model: &Model) -> bool {
        map.iter()
            .map(|(name, value)| (name.as_str(), value))
            .eq(model.iter().map(|(name, value)| (name.as_str(), value)))
    }

    fn entries() -> impl Strategy<Value = Vec<(String, i32)>> {
        proptest::collection::vec(("[a-d]{0,2}|[a-b]{30}", any::<i32>()), 0..24)
    }

    proptest! {
        #[test]
        fn behaves_like_a_btree_map(entries in entries(), removed in entries()) {
            let (mut map, mut model) = (Map::new(), Model::new());
            for (name, value) in entries {
                prop_assert_eq!(
                    map.insert(name.as_str(), Value::from(value)),
                    model.insert(name, Value::from(value))
                );
            }
            for (name, _) in removed {
                prop_assert_eq!(map.get(&name), model.get(&name));
                prop_assert_eq!(map.contains_key(&name), model.contains_key(&name));
                prop_assert_eq!(map.get_mut(&name), model.get_mut(&name));
                prop_assert_eq!(map.remove(&name), model.remove(&name));
            }
            prop_assert_eq!(map.len(), model.len());
            prop_assert!(same(&map, &model));
        }

        #[test]
        fn collecting_sorts_and_keeps_last_duplicate(entries in entries()) {
            let entries = entries.into_iter().map(|(name, value)| (name, Value::from(value)));
            let map: Map = entries.clone().collect();
            let model: Model = entries.clone().collect();
            prop_assert!(same(&map, &model));
            let mut extended = Map::new();
            extended.extend(entries);
            prop_assert_eq!(map, extended);
        }
    }
}
