//! Cancelled transactions: the codes and texts of the reasons.

use homeport_item::json;
use homeport_item::schema::KeyError;
use homeport_store::{CancelReason, InvalidRequest, TransactError};

use super::wording::invalid_text;
use super::{CONDITION_FAILED, DUPLICATE_ITEM, DYNAMODB, Failure, NOT_FOUND, VALIDATION};

impl Failure {
    pub(super) fn cancelled(reasons: &[CancelReason]) -> Self {
        Self::cancelled_with(reasons, &[])
    }

    /// A cancelled transaction. `special` has the reasons with codes of their own, which only statements have.
    fn cancelled_with(reasons: &[CancelReason], special: &[Option<SpecialReason>]) -> Self {
        let special = |at: usize| special.get(at).and_then(Option::as_ref);
        let codes: Vec<&str> = reasons
            .iter()
            .enumerate()
            .map(|(at, reason)| special(at).map_or_else(|| code(reason), |(code, _)| code))
            .collect();
        let mut failure = Self::new(
            DYNAMODB,
            "TransactionCanceledException",
            format!(
                "Transaction cancelled, please refer cancellation reasons for specific reasons [{}]",
                codes.join(", ")
            ),
        );
        failure.capital = true;
        let out = &mut failure.members;
        out.extend_from_slice(b",\"CancellationReasons\":[");
        for (at, reason) in reasons.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            match special(at) {
                Some((code, text)) => write_special(code, text, out),
                None => write_reason(reason, out),
            }
        }
        out.push(b']');
        failure
    }

    /// The failure of one statement of a transaction, which is named if the statement is invalid.
    pub(crate) fn in_statement(mut self, at: usize) -> Self {
        if self.kind == VALIDATION
            && let Some(text) = &mut self.text
        {
            text.insert_str(
                0,
                &format!("Validation failed in TransactStatements[{at}]: "),
            );
        }
        self
    }

    /// The failure of a transaction because of one statement. A missing table cancels the transaction.
    pub(crate) fn cancelling(self, at: usize, count: usize) -> Self {
        if self.kind != NOT_FOUND {
            return self.in_statement(at);
        }
        let mut special = vec![None; count];
        special[at] = self.text.map(|text| ("ResourceNotFound", text));
        Self::cancelled_with(&vec![CancelReason::None; count], &special)
    }

    /// A failed transaction of statements. A failed condition of an insert means a duplicate item.
    pub(crate) fn of_statements(error: TransactError, is_insert: &[bool]) -> Self {
        let TransactError::Cancelled(reasons) = error else {
            return error.into();
        };
        let special: Vec<Option<SpecialReason>> = reasons
            .iter()
            .zip(is_insert)
            .map(|(reason, is_insert)| {
                let is_duplicate =
                    *is_insert && matches!(reason, CancelReason::ConditionFailed { .. });
                is_duplicate.then(|| ("DuplicateItem", DUPLICATE_ITEM.to_owned()))
            })
            .collect();
        Self::cancelled_with(&reasons, &special)
    }
}

/// The code and the text of a cancellation reason that only statements have.
type SpecialReason = (&'static str, String);

fn write_special(code: &str, text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"Code\":");
    json::write_string(code, out);
    out.extend_from_slice(b",\"Message\":");
    json::write_string(text, out);
    out.push(b'}');
}

/// An empty key, which fails the request. Other invalid actions cancel the transaction.
pub(super) fn empty_key(reasons: &[CancelReason]) -> Option<&InvalidRequest> {
    reasons.iter().find_map(|reason| match reason {
        CancelReason::Invalid(
            invalid @ (InvalidRequest::Key(KeyError::Empty { .. })
            | InvalidRequest::IndexKey {
                error: KeyError::Empty { .. },
                ..
            }),
        ) => Some(invalid),
        _ => None,
    })
}

fn code(reason: &CancelReason) -> &'static str {
    match reason {
        CancelReason::None => "None",
        CancelReason::ConditionFailed { .. } => "ConditionalCheckFailed",
        CancelReason::Invalid(_) => "ValidationError",
        CancelReason::Conflict => "TransactionConflict",
        CancelReason::Throttled => "ThrottlingError",
    }
}

fn write_reason(reason: &CancelReason, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"Code\":");
    json::write_string(code(reason), out);
    let text = match reason {
        CancelReason::None => None,
        CancelReason::ConditionFailed { old } => {
            if let Some(old) = old {
                out.extend_from_slice(b",\"Item\":");
                json::write_item(old, out);
            }
            Some(CONDITION_FAILED.to_owned())
        }
        CancelReason::Invalid(invalid) => Some(invalid_text(invalid)),
        CancelReason::Conflict => Some("Transaction is ongoing for the item".to_owned()),
        CancelReason::Throttled => {
            Some("Throughput exceeds the current capacity of your table or index".to_owned())
        }
    };
    if let Some(text) = text {
        out.extend_from_slice(b",\"Message\":");
        json::write_string(&text, out);
    }
    out.push(b'}');
}
