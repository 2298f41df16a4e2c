//! The placeholders of a request, with tracking of which ones its expressions use.

use std::collections::BTreeMap;

use super::token::is_word_byte;
use crate::value::Value;

/// Maximum length of a placeholder, including its `#` or `:`.
pub const PLACEHOLDER_MAX_BYTES: usize = 255;

/// The names (`#n`) and values (`:v`) of one request, shared by all its expressions.
#[derive(Debug, Clone, Default)]
pub struct Placeholders {
    names: BTreeMap<String, Entry<String>>,
    values: BTreeMap<String, Entry<Value>>,
}

#[derive(Debug, Clone)]
struct Entry<T> {
    content: T,
    used: bool,
}

/// Why placeholders are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceholderError {
    #[error("{map} contains invalid key: Syntax error; key: \"{key}\"")]
    Syntax { map: &'static str, key: String },
    #[error(
        "{map} contains invalid key: The expression attribute map contains a key that is too long; key size: {size}"
    )]
    TooLong { map: &'static str, size: usize },
    #[error("Value provided in {map} unused in expressions: keys: {{{}}}", keys.join(", "))]
    Unused {
        map: &'static str,
        keys: Vec<String>,
    },
}

const NAMES: &str = "ExpressionAttributeNames";
const VALUES: &str = "ExpressionAttributeValues";

impl Placeholders {
    /// Validates the maps of a request. The keys include their `#` or `:`.
    ///
    /// # Errors
    /// When a key is not a valid placeholder.
    pub fn new(
        names: impl IntoIterator<Item = (String, String)>,
        values: impl IntoIterator<Item = (String, Value)>,
    ) -> Result<Self, PlaceholderError> {
        Ok(Self {
            names: entries(NAMES, '#', names)?,
            values: entries(VALUES, ':', values)?,
        })
    }

    /// The names that no expression has used yet.
    pub fn unused_names(&self) -> impl Iterator<Item = &str> {
        unused(&self.names)
    }

    /// The values that no expression has used yet.
    pub fn unused_values(&self) -> impl Iterator<Item = &str> {
        unused(&self.values)
    }

    /// Checks that every placeholder was used. Call it after parsing the last expression of the
    /// request.
    ///
    /// # Errors
    /// When a placeholder is unused, which DynamoDB rejects.
    pub fn check_all_used(&self) -> Result<(), PlaceholderError> {
        let check = |map, keys: Vec<String>| match keys.is_empty() {
            true => Ok(()),
            false => Err(PlaceholderError::Unused { map, keys }),
        };
        check(NAMES, self.unused_names().map(str::to_owned).collect())?;
        check(VALUES, self.unused_values().map(str::to_owned).collect())
    }

    /// The name behind `#placeholder`, which is marked as used.
    pub(super) fn name(&mut self, placeholder: &str) -> Option<&str> {
        self.names.get_mut(placeholder).map(|entry| {
            entry.used = true;
            entry.content.as_str()
        })
    }

    /// The value behind `:placeholder`, which is marked as used.
    pub(super) fn value(&mut self, placeholder: &str) -> Option<&Value> {
        self.values.get_mut(placeholder).map(|entry| {
            entry.used = true;
            &entry.content
        })
    }
}

fn entries<T>(
    map: &'static str,
    mark: char,
    given: impl IntoIterator<Item = (String, T)>,
) -> Result<BTreeMap<String, Entry<T>>, PlaceholderError> {
    given
        .into_iter()
        .map(|(key, content)| {
            if key.len() > PLACEHOLDER_MAX_BYTES {
                let size = key.len();
                return Err(PlaceholderError::TooLong { map, size });
            }
            match key.strip_prefix(mark) {
                Some(rest) if !rest.is_empty() && rest.bytes().all(is_word_byte) => {}
                _ => return Err(PlaceholderError::Syntax { map, key }),
            }
            let used = false;
            Ok((key, Entry { content, used }))
        })
        .collect()
}

fn unused<T>(entries: &BTreeMap<String, Entry<T>>) -> impl Iterator<Item = &str> {
    entries
        .iter()
        .filter(|(_, entry)| !entry.used)
        .map(|(key, _)| key.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(keys: &[&str]) -> Result<Placeholders, PlaceholderError> {
        let pairs = keys.iter().map(|key| ((*key).to_owned(), "x".to_owned()));
        Placeholders::new(pairs, [])
    }

    #[test]
    fn keys_must_be_placeholders() {
        assert!(names(&["#a", "#4", "#_"]).is_ok());
        for key in ["", "#", "a", ":a", "#a-b", "#a.b", "##", "#é"] {
            let refused = names(&[key]).expect_err("no placeholder").to_string();
            let expect = format!(
                "ExpressionAttributeNames contains invalid key: Syntax error; key: \"{key}\""
            );
            assert_eq!(refused, expect);
        }
        let long = format!("#{}", "a".repeat(PLACEHOLDER_MAX_BYTES));
        assert!(matches!(
            names(&[&long]),
            Err(PlaceholderError::TooLong { .. })
        ));
        assert!(names(&[&long[1..]]).is_err());
        assert!(names(&[&long[..PLACEHOLDER_MAX_BYTES]]).is_ok());
    }

    #[test]
    fn unused_placeholders_are_reported() {
        let mut placeholders = names(&["#a", "#b", "#c"]).expect("placeholders");
        assert_eq!(placeholders.name("#b"), Some("x"));
        assert_eq!(placeholders.name("#d"), None);
        assert_eq!(
            placeholders
                .check_all_used()
                .expect_err("two left")
                .to_string(),
            "Value provided in ExpressionAttributeNames unused in expressions: keys: {#a, #c}"
        );
        placeholders.name("#a");
        placeholders.name("#c");
        assert_eq!(placeholders.check_all_used(), Ok(()));
    }
}
