//! Converts DynamoDB's errors. Invalid requests, a busy store and an unavailable store are
//! different failures, and an unavailable store is never reported as one of the others.

use std::error::Error as StdError;

use aws_sdk_dynamodb::Error;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::CancellationReason;
use homeport_store::{StoreError, WriteError};

use crate::convert::value::Attributes;

/// DynamoDB's message for a query of a missing index.
const INDEX_MISSING: &str = "The table does not have the specified index";

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The current item, if requested and present.
    ConditionFailed(Option<Attributes>),
    Cancelled(Vec<CancellationReason>),
    /// A transaction is using the item; nothing was written.
    Conflict,
    /// A transaction with the same token is in progress.
    InProgress,
    TokenMismatch,
    /// The table, stream or backup of the request does not exist.
    NotFound,
    /// The table already exists or is being changed.
    InUse,
    IndexNotFound,
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
            // No connection, a timeout, missing credentials, or an invalid response.
            other => Self::Other(StoreError::Unavailable(chain(&other))),
        }
    }
}

impl Failure {
    fn from_service(error: Error) -> Self {
        let code = error.code().unwrap_or("an error without a code").to_owned();
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
            "ValidationException" if message.starts_with(INDEX_MISSING) => Self::IndexNotFound,
            "ValidationException"
            | "SerializationException"
            | "ItemCollectionSizeLimitExceededException" => {
                Self::Other(StoreError::invalid(message))
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
            // For example AccessDeniedException, UnrecognizedClientException or
            // ExpiredTokenException: problems of our configuration, not of the caller's request.
            _ => Self::Other(StoreError::Unavailable(format!("{code}: {message}"))),
        }
    }

    /// Converts a failure that the caller does not handle itself; `table` is the requested table.
    pub(crate) fn of_table(self, table: &str) -> StoreError {
        match self {
            Self::NotFound => StoreError::TableNotFound(table.to_owned()),
            Self::Conflict | Self::InProgress | Self::InUse => StoreError::Throttled,
            Self::Other(error) => error,
            Self::IndexNotFound => StoreError::IndexNotFound {
                table: table.to_owned(),
                index: String::new(),
            },
            Self::ConditionFailed(_) | Self::Cancelled(_) | Self::TokenMismatch => {
                StoreError::Unavailable("the response does not match the request".to_owned())
            }
        }
    }

    /// Like `of_table`, for a query or scan that may use an index.
    pub(crate) fn of_index(self, table: &str, index: Option<&str>) -> StoreError {
        match (self, index) {
            (Self::IndexNotFound, Some(index)) => StoreError::IndexNotFound {
                table: table.to_owned(),
                index: index.to_owned(),
            },
            (failure, _) => failure.of_table(table),
        }
    }

    /// Whether the service lacks this operation.
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

/// The request was throttled; nothing was written.
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

/// Whether an error text means that the service lacks the operation.
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
    fn error_codes_map_to_error_kinds() {
        let invalid = StoreError::invalid("why");
        check("ValidationException", &invalid);
        check(
            "ResourceNotFoundException",
            &StoreError::TableNotFound("the-table".to_owned()),
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
    fn missing_index_is_reported() {
        let message = format!("{INDEX_MISSING}: by-group");
        let failure = Failure::from_code("ValidationException", message);
        assert_eq!(
            failure.of_index("the-table", Some("by-group")),
            StoreError::IndexNotFound {
                table: "the-table".to_owned(),
                index: "by-group".to_owned(),
            }
        );
    }
}
