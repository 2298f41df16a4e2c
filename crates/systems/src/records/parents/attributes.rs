//! Further attributes of groups, devices and journals, beside those that the record store knows. They are attributes of
//! the item, as the design document has them, so that other programs can read and write them.

use homeport_item::expression::{Path, Update};
use homeport_item::{Item, Map, Value};

use crate::records::schema;
use crate::sensors::InvalidField;

/// Most attributes of one request.
const COUNT_MAX: usize = 50;
/// Longest name of an attribute, in characters.
const NAME_CHARS_MAX: usize = 128;
/// Largest total size.
const BYTES_MAX: usize = 16 * 1024;
/// Deepest nesting of the values.
pub const ATTRIBUTE_DEPTH_MAX: usize = 15;
/// The attributes that the record store knows.
const KNOWN: [&str; 8] = [
    schema::PK,
    schema::SK,
    schema::NAME,
    schema::RETENTION_SECS,
    schema::EXTERNAL_ID,
    schema::MODEL,
    schema::ACL_POLICY,
    schema::DATA_TYPE,
];

/// Attributes by name. In a change, null removes an attribute.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Attributes(Map);

impl Attributes {
    /// # Errors
    /// When there are too many attributes, one has the name of a known attribute, or they are too large.
    pub fn new(members: Map) -> Result<Self, InvalidField> {
        let is_name = |name: &str| {
            (1..=NAME_CHARS_MAX).contains(&name.chars().count()) && !KNOWN.contains(&name)
        };
        let sizes = members
            .iter()
            .map(|(name, value)| name.len() + value.size());
        let is_valid = members.len() <= COUNT_MAX
            && sizes.sum::<usize>() <= BYTES_MAX
            && members
                .iter()
                .all(|(name, value)| is_name(name) && value.depth() <= ATTRIBUTE_DEPTH_MAX);
        if is_valid {
            Ok(Self(members))
        } else {
            Err(InvalidField {
                field: "attributes",
                expected: "an object of at most 50 members and 16 KiB, without the names of other fields, nested at most 15 levels deep",
            })
        }
    }

    #[must_use]
    pub fn members(&self) -> &Map {
        &self.0
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn of_stored(item: &Item) -> Self {
        let further = item.iter().filter(|(name, _)| !KNOWN.contains(name));
        Self(Map::from_iter(
            further.map(|(name, value)| (name.to_owned(), value.clone())),
        ))
    }

    /// Adds them to a new item; null adds nothing.
    pub(super) fn add_to(&self, item: &mut Item) {
        for (name, value) in &self.0 {
            if *value != Value::Null {
                item.insert(&**name, value.clone());
            }
        }
    }

    /// The change of an existing item; null removes an attribute.
    pub(super) fn add_to_update(&self, update: Update) -> Update {
        self.0.iter().fold(update, |update, (name, value)| {
            let path = Path::new(&**name);
            match value {
                Value::Null => update.remove(path),
                value => update.set(path, value.clone()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_and_large_values_are_rejected() {
        let one = |name: &str, value: Value| Attributes::new(Map::from([(name.to_owned(), value)]));
        assert!(one("site", "north".into()).is_ok());
        for name in ["PK", "name", "acl_policy", ""] {
            assert!(one(name, 1.into()).is_err(), "{name}");
        }
        assert!(one("a", "x".repeat(BYTES_MAX).into()).is_err());
        let many = (0..=COUNT_MAX).map(|number| (number.to_string(), Value::from(1)));
        assert!(Attributes::new(many.collect()).is_err());
    }
}
