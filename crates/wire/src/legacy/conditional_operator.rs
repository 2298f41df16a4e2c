//! `ConditionalOperator`: joins several conditions with AND or OR.

use homeport_item::expression::Condition;

use crate::failure::Failure;
use crate::input::Text;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Join {
    All,
    Any,
}

/// Checks the operator against the number of conditions.
pub(crate) fn join(operator: Option<&Text<'_>>, conditions: usize) -> Result<Join, Failure> {
    let Some(operator) = operator else {
        return Ok(Join::All);
    };
    match (conditions, operator.as_str()) {
        (0, _) => Err(Failure::validation(
            "ConditionalOperator cannot be used without Filter or Expected",
        )),
        (1, _) => Err(Failure::validation(
            "ConditionalOperator can only be used when Filter or Expected has two or more elements",
        )),
        (_, "AND") => Ok(Join::All),
        (_, "OR") => Ok(Join::Any),
        // The wrong list of values is DynamoDB's.
        _ => Err(Failure::validation(
            "Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]",
        )),
    }
}

impl Join {
    pub(super) fn conditions(self, conditions: Vec<Condition>) -> Option<Condition> {
        match self {
            Self::All => Condition::all(conditions),
            Self::Any => Condition::any(conditions),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    #[test]
    fn operator_needs_several_conditions() {
        for (operator, conditions, expected) in [
            (None, 0, Ok(Join::All)),
            (Some("OR"), 2, Ok(Join::Any)),
            (Some("AND"), 3, Ok(Join::All)),
            (
                Some("OR"),
                0,
                Err("ConditionalOperator cannot be used without Filter or Expected"),
            ),
            (
                Some("XOR"),
                1,
                Err(
                    "ConditionalOperator can only be used when Filter or Expected has two or more elements",
                ),
            ),
            (
                Some("or"),
                2,
                Err("Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]"),
            ),
        ] {
            let operator = operator.map(|text| Text(Cow::Borrowed(text)));
            let joined = join(operator.as_ref(), conditions);
            let joined = joined.map_err(|failure| failure.text().unwrap_or_default().to_owned());
            assert_eq!(joined, expected.map_err(str::to_owned));
        }
    }
}
