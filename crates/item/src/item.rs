//! An item (a set of named attributes) and DynamoDB's limits on it.

use std::ops::{Deref, DerefMut};

use crate::map::{Map, Name};
use crate::value::{DEPTH_MAX, Value};

/// Maximum size of an item.
pub const ITEM_SIZE_MAX_BYTES: usize = 400 * 1024;
/// Maximum length of an attribute name.
pub const NAME_SIZE_MAX_BYTES: usize = 65_535;

/// A complete item.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Item(Map);

/// Why an item cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ItemError {
    #[error("Item size has exceeded the maximum allowed size")]
    TooLarge,
    #[error(
        "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit"
    )]
    TooDeep,
    #[error("Empty attribute name")]
    EmptyName,
    #[error("Attribute name is too large, must be less than {NAME_SIZE_MAX_BYTES} bytes")]
    NameTooLong,
}

impl Item {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty item with capacity for `attributes` attributes.
    #[must_use]
    pub fn with_capacity(attributes: usize) -> Self {
        Self(Map::with_capacity(attributes))
    }

    pub fn insert(&mut self, name: impl Into<Name>, value: impl Into<Value>) -> Option<Value> {
        self.0.insert(name, value.into())
    }

    /// Adds an attribute, for items built in code.
    #[must_use]
    pub fn with(mut self, name: impl Into<Name>, value: impl Into<Value>) -> Self {
        self.insert(name, value);
        self
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    #[must_use]
    pub fn attributes(&self) -> &Map {
        &self.0
    }

    pub fn attributes_mut(&mut self) -> &mut Map {
        &mut self.0
    }

    #[must_use]
    pub fn into_attributes(self) -> Map {
        self.0
    }

    /// The item's size as DynamoDB counts it: the bytes of all names and values.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0
            .iter()
            .map(|(name, value)| name.len() + value.size())
            .sum()
    }

    /// Checks the limits that apply to every item of every table.
    ///
    /// # Errors
    /// The first limit that the item exceeds.
    pub fn check(&self) -> Result<(), ItemError> {
        for (name, value) in &self.0 {
            if name.is_empty() {
                return Err(ItemError::EmptyName);
            }
            if name.len() > NAME_SIZE_MAX_BYTES {
                return Err(ItemError::NameTooLong);
            }
            if value.depth() > DEPTH_MAX {
                return Err(ItemError::TooDeep);
            }
        }
        if self.size() > ITEM_SIZE_MAX_BYTES {
            return Err(ItemError::TooLarge);
        }
        Ok(())
    }
}

impl Deref for Item {
    type Target = Map;

    fn deref(&self) -> &Map {
        &self.0
    }
}

impl DerefMut for Item {
    fn deref_mut(&mut self) -> &mut Map {
        &mut self.0
    }
}

impl From<Map> for Item {
    fn from(attributes: Map) -> Self {
        Self(attributes)
    }
}

impl<N: Into<Name>, V: Into<Value>> FromIterator<(N, V)> for Item {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(attributes: I) -> Self {
        Self(
            attributes
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }
}

impl IntoIterator for Item {
    type Item = (Name, Value);
    type IntoIter = std::vec::IntoIter<(Name, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_limit_counts_names_and_values() {
        let fits = Item::new().with("a", "x".repeat(ITEM_SIZE_MAX_BYTES - 1));
        assert_eq!(fits.check(), Ok(()));
        let over = fits.with("b", "");
        assert_eq!(over.check(), Err(ItemError::TooLarge));
    }

    #[test]
    fn nesting_is_limited_to_32_levels() {
        let nest = |levels: usize| {
            let value = (0..levels).fold(Value::Null, |inner, _| Value::L(vec![inner]));
            Item::new().with("a", value).check()
        };
        assert_eq!(nest(31), Ok(()));
        assert_eq!(nest(32), Err(ItemError::TooDeep));
    }
}
