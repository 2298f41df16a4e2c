//! What is wrong with a value of a request, in the words of either of the two ways in which DynamoDB reads values.
//!
//! Most operations that are about one item have the newer words. Batches of writes, transactions, scans and the parameters of
//! statements have the older ones.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use homeport_item::item::ItemError;
use homeport_item::{Number, NumberError};

use crate::constraints::SHOWN_MAX_BYTES;

/// The value that a text shows, with room for what is said of it.
const TEXT_MAX_BYTES: usize = SHOWN_MAX_BYTES + 256;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    newer: String,
    /// Where it is worded in another way.
    older: Option<String>,
    too_deep: bool,
}

impl Problem {
    /// One that is worded the same everywhere.
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self {
            newer: cut_off(text.into()),
            older: None,
            too_deep: false,
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
        match Number::parse_narrow(text) {
            Err(older) => Self::worded(newer, older.to_string()),
            Ok(_) => Self::worded(newer.clone(), newer),
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

    /// The value has more levels than a value may have.
    pub(crate) fn is_too_deep(&self) -> bool {
        self.too_deep
    }
}

/// A text with no more of a value than messages show.
fn cut_off(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(TEXT_MAX_BYTES));
    text
}

/// Members of a set as the newer words list them: sorted up to the first repetition, then as they came.
pub(super) fn sorted_to_repetition<T: Ord>(members: &[T]) -> Vec<&T> {
    let mut seen = BTreeSet::new();
    let distinct = members
        .iter()
        .take_while(|member| seen.insert(*member))
        .count();
    let rest = &members[distinct..];
    seen.into_iter().chain(rest).collect()
}

/// Joins members for a message, which shows no more of them than messages show of any value.
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
    fn members_are_sorted_up_to_the_first_repetition() {
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
    fn long_lists_are_cut_off() {
        assert_eq!(listed(["a", "b"], ", "), "a, b");
        assert_eq!(listed(vec!["ab"; 100_000], ",").len(), SHOWN_MAX_BYTES);
        assert!(listed(["é".repeat(5_000)], ",").len() <= SHOWN_MAX_BYTES);
        let text = "x".repeat(1_000_000);
        let error = text.parse::<Number>().expect_err("no number");
        assert!(Problem::number(&text, &error).older().len() <= TEXT_MAX_BYTES);
    }

    #[test]
    fn numbers_are_refused_in_two_ways() {
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
