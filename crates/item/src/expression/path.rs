//! Document paths (`a.b[3].c`) and the documents against which they are resolved.

use std::borrow::Cow;
use std::fmt;

use crate::binary::{DecodeError, ItemRef};
use crate::item::Item;
use crate::value::Value;

/// A path to an attribute or to a value nested in one. Never empty: it starts with the name of a
/// top-level attribute.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path {
    name: String,
    nested: Vec<PathElement>,
}

/// One step below the top-level attribute.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PathElement {
    Name(String),
    Index(u32),
}

impl Path {
    /// The path of a top-level attribute. Dots in `name` are part of the name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            nested: Vec::new(),
        }
    }

    /// The path of a map's member below this one.
    #[must_use]
    pub fn member(mut self, name: impl Into<String>) -> Self {
        self.nested.push(PathElement::Name(name.into()));
        self
    }

    /// The path of a list's element below this one.
    #[must_use]
    pub fn element(mut self, index: u32) -> Self {
        self.nested.push(PathElement::Index(index));
        self
    }

    /// The top-level attribute's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The steps below the top-level attribute.
    #[must_use]
    pub fn nested(&self) -> &[PathElement] {
        &self.nested
    }
}

impl<S: Into<String>> From<S> for Path {
    fn from(name: S) -> Self {
        Self::new(name)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)?;
        for element in &self.nested {
            match element {
                PathElement::Name(name) => write!(formatter, ".{name}")?,
                PathElement::Index(index) => write!(formatter, "[{index}]")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Path({self})")
    }
}

/// A document against which paths are resolved: an item in memory or its binary form.
pub trait Document {
    /// The value at `path`, if it exists.
    ///
    /// # Errors
    /// When the stored form is damaged.
    fn resolve(&self, path: &Path) -> Result<Option<Cow<'_, Value>>, DecodeError>;
}

impl Document for Item {
    fn resolve(&self, path: &Path) -> Result<Option<Cow<'_, Value>>, DecodeError> {
        let mut found = self.get(path.name());
        for element in path.nested() {
            found = match (found, element) {
                (Some(Value::M(map)), PathElement::Name(name)) => map.get(name),
                (Some(Value::L(list)), PathElement::Index(index)) => list.get(*index as usize),
                _ => None,
            };
        }
        Ok(found.map(Cow::Borrowed))
    }
}

impl Document for ItemRef<'_> {
    fn resolve(&self, path: &Path) -> Result<Option<Cow<'_, Value>>, DecodeError> {
        let mut found = self.get(path.name())?;
        for element in path.nested() {
            found = match (found, element) {
                (Some(value), PathElement::Name(name)) => value.member(name)?,
                (Some(value), PathElement::Index(index)) => value.element(*index as usize)?,
                (None, _) => None,
            };
        }
        found
            .map(|value| value.to_value().map(Cow::Owned))
            .transpose()
    }
}
