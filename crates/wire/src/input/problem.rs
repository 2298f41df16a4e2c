//! Problems with the values of a request. DynamoDB reads values in two ways, each with its own wording.
//!
//! Most operations on one item use the newer wording. Batch writes, transactions, scans and the parameters of statements use the
//! older one.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use homeport_item::item::ItemError;
use homeport_item::{Number, NumberError};

use crate::constraints::SHOWN_MAX_BYTES;
use crate::failure::Failure;

/// The longest text: the shown part of a value and the message around it.
const TEXT_MAX_BYTES: usize = SHOWN_MAX_BYTES + 256;

/// The two wordings that DynamoDB has for invalid values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wording {
    Newer,
    Older,
}

/// Why a value is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    newer: String,
    /// Only if it differs.
    older: Option<String>,
    too_deep: bool,
    /// The value does not have exactly one type.
    wrong_type_count: bool,
}

impl Problem {
    /// A problem with the same text in both wordings.
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self {
            newer: cut_off(text.into()),
            older: None,
            too_deep: false,
            wrong_type_count: false,
        }
    }

    /// A value without a type, or with several.
    pub(super) fn wrong_type_count(text: &str) -> Self {
        Self {
            wrong_type_count: true,
            ..Self::new(text)
        }
    }

    pub(super) fn worded(newer: impl Into<String>, older: impl Into<String>) -> Self {
        Self {
            older: Some(cut_off(older.into())),
            ..Self::new(newer)
        }
    }

    pub(super) fn too_deep() -> Self {
        Self {
            too_deep: true,
            ..Self::new(ItemError::TooDeep.to_string())
        }
    }

    pub(super) fn number(text: &str, error: &NumberError) -> Self {
        let newer = match error {
            NumberError::Empty => format!("{error}: "),
            _ => error.to_string(),
        };
        match Number::parse_legacy(text) {
            Err(older) => Self::worded(newer, older.to_string()),
            Ok(_) => Self::worded(newer.clone(), newer),
        }
    }

    /// The failure of a request with this value.
    pub(crate) fn failure(&self, wording: Wording) -> Failure {
        self.failure_with(match wording {
            Wording::Newer => self.newer(),
            Wording::Older => self.older(),
        })
    }

    /// The failure of a request with this value and a text that contains the problem.
    pub(crate) fn failure_with(&self, text: impl Into<String>) -> Failure {
        let failure = Failure::validation(text);
        match self.wrong_type_count {
            true => failure.never_counted(),
            false => failure,
        }
    }

    pub(crate) fn newer(&self) -> &str {
        &self.newer
    }

    pub(crate) fn older(&self) -> &str {
        self.older.as_deref().unwrap_or(&self.newer)
    }

    /// Whether messages omit the parameter that contains the value. They do so for invalid numbers and for sets with
    /// duplicate members, which are also the problems with two wordings.
    pub(crate) fn omits_parameter(&self) -> bool {
        self.older.is_some()
    }

    /// Whether the value has too many levels.
    pub(crate) fn is_too_deep(&self) -> bool {
        self.too_deep
    }
}

/// Shortens a text to the part that messages show.
fn cut_off(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(TEXT_MAX_BYTES));
    text
}

/// Members of a set as the newer wording lists them: sorted up to the first repetition, then in their order.
pub(super) fn sorted_to_repetition<T: Ord>(members: &[T]) -> Vec<&T> {
    let mut seen = BTreeSet::new();
    let distinct = members
        .iter()
        .take_while(|member| seen.insert(*member))
        .count();
    let rest = &members[distinct..];
    seen.into_iter().chain(rest).collect()
}

/// Joins members for a message, up to the length that messages show.
pub(super) fn listed<T: fmt::Display>(
    members: impl IntoIterator<Item = T>,
    separator: &str,
) -> String {
    let mut listed = String::new();
    for member in members {
        if !listed.is_empty() {
            listed.push_str(separator);
        }
        let _ = write!(listed, "{member}");
        if listed.len() >= SHOWN_MAX_BYTES {
            listed.truncate(listed.floor_char_boundary(SHOWN_MAX_BYTES));
            break;
        }
    }
    listed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_sorted_up_to_first_repetition() {
        for (members, listed) in [
            (&["b", "a", "b"][..], &["a", "b", "b"][..]),
            (&["c", "b", "b", "a"], &["b", "c", "b", "a"]),
            (&["a", "a"], &["a", "a"]),
            (&["b", "a"], &["a", "b"]),
        ] {
            let sorted: Vec<&str> = sorted_to_repetition(members).into_iter().copied().collect();
            assert_eq!(sorted, listed);
        }
    }

    #[test]
    fn long_lists_are_truncated() {
        assert_eq!(listed(["a", "b"], ", "), "a, b");
        assert_eq!(listed(vec!["ab"; 100_000], ",").len(), SHOWN_MAX_BYTES);
        assert!(listed(["é".repeat(5_000)], ",").len() <= SHOWN_MAX_BYTES);
        let text = "x".repeat(1_000_000);
        let error = text.parse::<Number>().expect_err("no number");
        assert!(Problem::number(&text, &error).older().len() <= TEXT_MAX_BYTES);
    }

    #[test]
    fn invalid_numbers_have_two_wordings() {
        for (text, newer, older) in [
            (
                "",
                "The parameter cannot be converted to a numeric value: ",
                "The parameter cannot be converted to a numeric value",
            ),
            (
                "x",
                "The parameter cannot be converted to a numeric value: x",
                "The parameter cannot be converted to a numeric value: x",
            ),
            (
                "1e2147483648",
                "Number overflow. Attempting to store a number with magnitude larger than supported range",
                "The parameter cannot be converted to a numeric value: 1e2147483648",
            ),
            (
                "1e2147483647",
                "Number overflow. Attempting to store a number with magnitude larger than supported range",
                "Number underflow. Attempting to store a number with magnitude smaller than supported range",
            ),
        ] {
            let error = text.parse::<Number>().expect_err(text);
            let problem = Problem::number(text, &error);
            assert_eq!((problem.newer(), problem.older()), (newer, older), "{text}");
        }
    }
}
