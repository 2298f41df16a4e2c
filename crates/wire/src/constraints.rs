//! The checks that DynamoDB's API model makes first and reports together: missing members, lengths, ranges, patterns and
//! enumerations.

use std::fmt::Write as _;

use crate::failure::Failure;
use crate::input::{Integer, List, Text};

/// The largest number of reported violations.
const REPORTED_MAX: usize = 10;
/// Longer values are truncated in messages.
pub(crate) const SHOWN_MAX_BYTES: usize = 4096;

pub(crate) const RETURN_VALUES: &[&str] =
    &["ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW"];
pub(crate) const RETURN_ON_FAILURE: &[&str] = &["ALL_OLD", "NONE"];
pub(crate) const RETURN_CAPACITY: &[&str] = &["INDEXES", "TOTAL", "NONE"];
pub(crate) const RETURN_METRICS: &[&str] = &["SIZE", "NONE"];
pub(crate) const CONDITIONAL_OPERATORS: &[&str] = &["OR", "AND"];
pub(crate) const SELECT: &[&str] = &[
    "SPECIFIC_ATTRIBUTES",
    "COUNT",
    "ALL_ATTRIBUTES",
    "ALL_PROJECTED_ATTRIBUTES",
];

/// The violations that were found so far.
#[derive(Debug, Default)]
pub(crate) struct Constraints(Vec<String>);

impl Constraints {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    fn violated(&mut self, value: Option<&str>, path: &str, constraint: std::fmt::Arguments<'_>) {
        if self.0.len() >= REPORTED_MAX {
            return;
        }
        let mut text = String::from("Value ");
        match value {
            Some(value) => {
                let shown = value.floor_char_boundary(SHOWN_MAX_BYTES);
                let _ = write!(text, "'{}'", &value[..shown]);
            }
            None => text.push_str("null"),
        }
        let _ = write!(
            text,
            " at '{path}' failed to satisfy constraint: {constraint}"
        );
        self.0.push(text);
    }

    pub(crate) fn not_null<T>(&mut self, path: &str, value: Option<&T>) {
        if value.is_none() {
            self.violated(None, path, format_args!("Member must not be null"));
        }
    }

    pub(crate) fn one_of(&mut self, path: &str, value: Option<&Text<'_>>, allowed: &[&str]) {
        if let Some(value) = value
            && !allowed.contains(&value.as_str())
        {
            self.violated(
                Some(value.as_str()),
                path,
                format_args!(
                    "Member must satisfy enum value set: [{}]",
                    allowed.join(", ")
                ),
            );
        }
    }

    /// The value of `ReturnValues` of a write. DynamoDB's text names neither the member nor all valid values correctly.
    pub(crate) fn return_values(&mut self, value: Option<&Text<'_>>) {
        if value.is_some_and(|value| !RETURN_VALUES.contains(&value.as_str())) {
            self.unnamed(
                "Failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]",
            );
        }
    }

    /// A violation with a text of its own.
    pub(crate) fn unnamed(&mut self, text: &str) {
        if self.0.len() < REPORTED_MAX {
            self.0.push(text.to_owned());
        }
    }

    pub(crate) fn at_least(&mut self, path: &str, value: Option<Integer>, least: i64) {
        if let Some(Integer(value)) = value
            && value < least
        {
            self.violated(
                Some(&value.to_string()),
                path,
                format_args!("Member must have value greater than or equal to {least}"),
            );
        }
    }

    pub(crate) fn at_most(&mut self, path: &str, value: Option<Integer>, most: i64) {
        if let Some(Integer(value)) = value
            && value > most
        {
            self.violated(
                Some(&value.to_string()),
                path,
                format_args!("Member must have value less than or equal to {most}"),
            );
        }
    }

    /// The number of entries of a page.
    pub(crate) fn page_limit(&mut self, path: &str, value: Option<Integer>, most: i64) {
        self.at_least(path, value, 1);
        self.at_most(path, value, most);
    }

    pub(crate) fn text_length(
        &mut self,
        path: &str,
        value: Option<&Text<'_>>,
        least: usize,
        most: usize,
    ) {
        if let Some(value) = value {
            self.length(path, value.as_str(), value.as_str().len(), least, most);
        }
    }

    pub(crate) fn list_length<T>(
        &mut self,
        path: &str,
        value: Option<&List<T>>,
        least: usize,
        most: usize,
    ) {
        if let Some(List(elements)) = value {
            let shown = if elements.is_empty() { "[]" } else { "[...]" };
            self.length(path, shown, elements.len(), least, most);
        }
    }

    /// The length of a list whose elements are shown in the violation.
    pub(crate) fn shown_list_length<T: std::fmt::Display>(
        &mut self,
        path: &str,
        value: Option<&List<T>>,
        least: usize,
        most: usize,
    ) {
        if let Some(List(elements)) = value
            && !(least..=most).contains(&elements.len())
        {
            let shown: Vec<String> = elements.iter().map(T::to_string).collect();
            let shown = format!("[{}]", shown.join(", "));
            self.length(path, &shown, elements.len(), least, most);
        }
    }

    pub(crate) fn length(
        &mut self,
        path: &str,
        shown: &str,
        len: usize,
        least: usize,
        most: usize,
    ) {
        if len < least {
            self.violated(
                Some(shown),
                path,
                format_args!("Member must have length greater than or equal to {least}"),
            );
        }
        if len > most {
            self.violated(
                Some(shown),
                path,
                format_args!("Member must have length less than or equal to {most}"),
            );
        }
    }

    /// The pattern of table and index names.
    pub(crate) fn name_pattern(&mut self, path: &str, value: Option<&Text<'_>>) {
        if let Some(value) = value
            && !is_name(value.as_str())
        {
            self.violated(
                Some(value.as_str()),
                path,
                format_args!("Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"),
            );
        }
    }

    /// The pattern and the length of names of tables, indexes and backups.
    pub(crate) fn resource_name(&mut self, path: &str, value: Option<&Text<'_>>) {
        self.name_pattern(path, value);
        self.text_length(path, value, 3, 255);
    }

    /// The violation for map keys that are not valid table names.
    pub(crate) fn map_keys(&mut self, path: &str, shown: &str) {
        self.violated(
            Some(shown),
            path,
            format_args!(
                "Map keys must satisfy constraint: [Member must have length less than or equal to 255, Member must have length greater than or equal to 3, Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+]"
            ),
        );
    }

    /// The violation for the lengths of the values of a map.
    pub(crate) fn map_values(&mut self, path: &str, shown: &str, least: usize, most: usize) {
        self.violated(
            Some(shown),
            path,
            format_args!(
                "Map value must satisfy constraint: [Member must have length less than or equal to {most}, Member must have length greater than or equal to {least}]"
            ),
        );
    }

    /// Fails if there are violations.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self.0.len() {
            0 => Ok(()),
            1 => Err(Failure::violations(format!(
                "1 validation error detected: {}",
                self.0[0]
            ))),
            count => Err(Failure::violations(format!(
                "{count} validation errors detected: {}",
                self.0.join("; ")
            ))),
        }
    }
}

pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    #[test]
    fn violations_are_reported_together() {
        let text = Text(Cow::Borrowed("x!"));
        let mut constraints = Constraints::new();
        constraints.not_null::<Text<'_>>("key", None);
        constraints.one_of("returnValues", Some(&text), &["A", "B"]);
        constraints.at_least("limit", Some(Integer(0)), 1);
        let failure = constraints.finish().expect_err("three violations");
        assert_eq!(
            failure.text(),
            Some(
                "3 validation errors detected: Value null at 'key' failed to satisfy constraint: Member must not be null; \
                 Value 'x!' at 'returnValues' failed to satisfy constraint: Member must satisfy enum value set: [A, B]; \
                 Value '0' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1"
            )
        );
        assert!(Constraints::new().finish().is_ok());
    }

    #[test]
    fn long_values_are_truncated_in_messages() {
        let text = Text(Cow::Owned("é".repeat(5000)));
        let mut constraints = Constraints::new();
        constraints.one_of("x", Some(&text), &["A"]);
        let failure = constraints.finish().expect_err("a violation");
        assert!(failure.text().expect("a text").len() < 4400);
    }
}
