//! What DynamoDB's errors mean to us. A request that is wrong, a store that is busy and a store that
//! cannot be had are three things, and nothing of the third kind ever looks like one of the others.

use std::error::Error as StdError;

use aws_sdk_dynamodb::Error;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::CancellationReason;
use homeport_store::{StoreError, WriteError};

use crate::value::Attributes;

/// How DynamoDB words a query of an index that is not there.
const INDEX_MISSING: &str = "The table does not have the specified index";

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The item as it is, where it was asked for and exists.
    ConditionFailed(Option<Attributes>),
    Cancelled(Vec<CancellationReason>),
    /// A transaction is working on the item; nothing was written.
    Conflict,
    /// The same transaction, by its token, is being worked on.
    InProgress,
    TokenMismatch,
    /// A table of the request, or the stream or backup that was asked for.
    NotFound,
    /// The table is there already, or being changed.
    InUse,
    IndexMissing,
    Other(StoreError),
}

impl<E> From<SdkError<E, HttpResponse>> for Failure
where
    E: StdError + Send + Sync + 'static,
    Error: From<E>,
{
    fn from(error: SdkError<E, HttpResponse>) -> Self {
        match error {
            SdkError::ServiceError(context) => Self::from_service(context.into_err().into()),
            // No connection, no answer in time, no credentials, or an answer that is none.
            other => Self::Other(StoreError::Unavailable(chain(&other))),
        }
    }
}

impl Failure {
    fn from_service(error: Error) -> Self {
        let code = error.code().unwrap_or("an error without a name").to_owned();
        let message = error.message().unwrap_or_default().to_owned();
        match error {
            Error::ConditionalCheckFailedException(failed) => {
                return Self::ConditionFailed(failed.item);
            }
            Error::TransactionCanceledException(cancelled) => {
                return Self::Cancelled(cancelled.cancellation_reasons.unwrap_or_default());
            }
            _ => {}
        }
        Self::from_code(&code, message)
    }

    pub(crate) fn from_code(code: &str, message: String) -> Self {
        match code {
            "ValidationException" if message.starts_with(INDEX_MISSING) => Self::IndexMissing,
            "ValidationException"
            | "SerializationException"
            | "ItemCollectionSizeLimitExceededException" => {
                Self::Other(StoreError::Invalid(message))
            }
            "ResourceNotFoundException" | "TableNotFoundException" => Self::NotFound,
            "ResourceInUseException" | "TableInUseException" | "TableAlreadyExistsException" => {
                Self::InUse
            }
            "TransactionConflictException" | "ReplicatedWriteConflictException" => Self::Conflict,
            "TransactionInProgressException" => Self::InProgress,
            "IdempotentParameterMismatchException" => Self::TokenMismatch,
            "ProvisionedThroughputExceededException"
            | "ThrottlingException"
            | "Throttling"
            | "RequestLimitExceeded"
            | "LimitExceededException" => Self::Other(StoreError::Throttled),
            // Above all AccessDeniedException, UnrecognizedClientException, ExpiredTokenException:
            // ours to set right, and no caller's fault.
            _ => Self::Other(StoreError::Unavailable(format!("{code}: {message}"))),
        }
    }

    /// What is left when the caller has looked at what it expects; `table` is the one asked for.
    pub(crate) fn of_table(self, table: &str) -> StoreError {
        match self {
            Self::NotFound => StoreError::TableMissing(table.to_owned()),
            Self::Conflict | Self::InProgress | Self::InUse => StoreError::Throttled,
            Self::Other(error) => error,
            Self::IndexMissing => StoreError::IndexMissing {
                table: table.to_owned(),
                index: String::new(),
            },
            Self::ConditionFailed(_) | Self::Cancelled(_) | Self::TokenMismatch => {
                StoreError::Unavailable("an answer that does not belong to the request".to_owned())
            }
        }
    }

    /// The same for a query or scan, which may have asked for an index.
    pub(crate) fn of_index(self, table: &str, index: Option<&str>) -> StoreError {
        match (self, index) {
            (Self::IndexMissing, Some(index)) => StoreError::IndexMissing {
                table: table.to_owned(),
                index: index.to_owned(),
            },
            (failure, _) => failure.of_table(table),
        }
    }

    /// The place does not have this operation at all.
    pub(crate) fn is_unknown_operation(&self) -> bool {
        match self {
            Self::Other(StoreError::Unavailable(reason)) => is_unknown_operation(reason),
            _ => false,
        }
    }

    pub(crate) fn is_throttling(&self) -> bool {
        matches!(
            self,
            Self::Conflict | Self::InProgress | Self::Other(StoreError::Throttled)
        )
    }
}

/// Nothing was written, and nothing could be now.
pub(crate) fn throttled() -> WriteError {
    StoreError::Throttled.into()
}

/// An error with its causes, outermost first.
pub(crate) fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}

/// Whether an error's text is that of a place without the operation.
pub(crate) fn is_unknown_operation(reason: &str) -> bool {
    reason.starts_with("UnknownOperationException")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: &str, expected: &StoreError) {
        let failure = Failure::from_code(code, "why".to_owned());
        assert_eq!(&failure.of_table("the-table"), expected, "{code}");
    }

    #[test]
    fn each_kind_of_error_is_told_apart() {
        let invalid = StoreError::Invalid("why".to_owned());
        check("ValidationException", &invalid);
        check(
            "ResourceNotFoundException",
            &StoreError::TableMissing("the-table".to_owned()),
        );
        for code in [
            "ProvisionedThroughputExceededException",
            "ThrottlingException",
            "RequestLimitExceeded",
            "TransactionConflictException",
            "TransactionInProgressException",
        ] {
            check(code, &StoreError::Throttled);
        }
        for code in [
            "AccessDeniedException",
            "UnrecognizedClientException",
            "ExpiredTokenException",
            "InvalidSignatureException",
            "InternalServerError",
            "SomethingNew",
        ] {
            check(code, &StoreError::Unavailable(format!("{code}: why")));
        }
    }

    #[test]
    fn an_index_that_is_missing_is_named() {
        let message = format!("{INDEX_MISSING}: by-group");
        let failure = Failure::from_code("ValidationException", message);
        assert_eq!(
            failure.of_index("the-table", Some("by-group")),
            StoreError::IndexMissing {
                table: "the-table".to_owned(),
                index: "by-group".to_owned(),
            }
        );
    }
}
