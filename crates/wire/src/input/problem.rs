//! What is wrong with a value of a request, in the words of either of the two ways in which DynamoDB reads values.
//!
//! Most operations that are about one item have the newer words. Batches of writes, transactions, scans and the parameters of
//! statements have the older ones.

use homeport_item::item::ItemError;
use homeport_item::{Number, NumberError};

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
            newer: text.into(),
            older: None,
            too_deep: false,
        }
    }

    pub(super) fn worded(newer: impl Into<String>, older: impl Into<String>) -> Self {
        Self {
            older: Some(older.into()),
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
            Ok(_) => Self::new(newer),
        }
    }

    pub(crate) fn newer(&self) -> &str {
        &self.newer
    }

    pub(crate) fn older(&self) -> &str {
        self.older.as_deref().unwrap_or(&self.newer)
    }

    /// A number or a set that the two ways of reading word differently.
    pub(crate) fn has_two_wordings(&self) -> bool {
        self.older.is_some()
    }

    /// The value has more levels than a value may have.
    pub(crate) fn is_too_deep(&self) -> bool {
        self.too_deep
    }
}

/// Members of a set as the newer words list them: sorted up to the first repetition, then as they came.
pub(super) fn sorted_to_repetition<T: Ord + Clone>(members: &[T]) -> Vec<T> {
    let mut listed: Vec<T> = Vec::with_capacity(members.len());
    for (at, member) in members.iter().enumerate() {
        match listed.binary_search(member) {
            Err(place) => listed.insert(place, member.clone()),
            Ok(_) => {
                listed.extend_from_slice(&members[at..]);
                break;
            }
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
            assert_eq!(sorted_to_repetition(members), listed);
        }
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
