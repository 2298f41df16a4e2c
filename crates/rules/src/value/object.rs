//! JSON objects that preserve the order of their members.

use indexmap::IndexMap;

use crate::value::Value;

/// Values by name, in the order of their first insertion.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Object(IndexMap<String, Value>);

impl Object {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty object with capacity for `members` members.
    pub(crate) fn with_capacity(members: usize) -> Self {
        Self(IndexMap::with_capacity(members))
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Inserts a value. An existing name keeps its position.
    pub fn insert(&mut self, name: impl Into<String>, value: Value) -> Option<Value> {
        self.0.insert(name.into(), value)
    }

    /// Removes a value; the others keep their order.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.0.shift_remove(name)
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.0.get_mut(name)
    }

    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<N: Into<String>> FromIterator<(N, Value)> for Object {
    fn from_iter<I: IntoIterator<Item = (N, Value)>>(members: I) -> Self {
        Self(
            members
                .into_iter()
                .map(|(name, value)| (name.into(), value))
                .collect(),
        )
    }
}

impl IntoIterator for Object {
    type Item = (String, Value);
    type IntoIter = Members;

    fn into_iter(self) -> Members {
        Members(self.0.into_iter())
    }
}

/// The members of an object, in order.
#[derive(Debug)]
pub struct Members(indexmap::map::IntoIter<String, Value>);

impl Iterator for Members {
    type Item = (String, Value);

    fn next(&mut self) -> Option<(String, Value)> {
        self.0.next()
    }
}
