//! DynamoDB's words for the errors of the engine and of the data model.

use homeport_engine::{RestoreError, StreamError, TableBackupError, TableError};
use homeport_item::binary::DecodeError;
use homeport_item::expression::{
    ExpressionError, ExpressionProblem, KeyConditionError, PlaceholderError,
};
use homeport_item::item::ItemError;
use homeport_item::schema::KeyError;
use homeport_store::{InvalidRequest, StoreError, TransactError, WriteError};

use super::cancelled::empty_key;
use super::{DYNAMODB, Failure};

/// DynamoDB's text for an invalid request.
pub(super) fn invalid_text(invalid: &InvalidRequest) -> String {
    match invalid {
        InvalidRequest::UpdatedItemTooLarge => {
            "Item size to update has exceeded the maximum allowed size".to_owned()
        }
        InvalidRequest::IndexKey {
            index,
            error,
            by_update,
        } => match error {
            KeyError::WrongKind {
                name,
                expected,
                actual,
            } => format!(
                "One or more parameter values were invalid: Type mismatch for Index Key {name} Expected: {expected} Actual: {actual} IndexName: {index}"
            ),
            KeyError::Empty { kind, .. } if *by_update => format!(
                "One or more parameter values are not valid. The update expression attempted to update a secondary index key to a value that is not supported. The AttributeValue for a key attribute cannot contain an empty {kind} value."
            ),
            KeyError::Empty { name, kind } => format!(
                "One or more parameter values are not valid. A value specified for a secondary index key is not supported. The AttributeValue for a key attribute cannot contain an empty {kind} value. IndexName: {index}, IndexKey: {name}"
            ),
            other => other.to_string(),
        },
        InvalidRequest::ConsistentRead(_) => {
            "Consistent reads are not supported on global secondary indexes".to_owned()
        }
        InvalidRequest::AllAttributes(index) => format!(
            "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for global secondary index {index} because its projection type is not ALL"
        ),
        // These errors of the data model have DynamoDB's words.
        InvalidRequest::Key(_)
        | InvalidRequest::Item(_)
        | InvalidRequest::Expression(_)
        | InvalidRequest::KeyCondition(_)
        | InvalidRequest::Update(_)
        | InvalidRequest::Other(_) => invalid.to_string(),
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Invalid(invalid) => Self::validation(invalid_text(&invalid)),
            StoreError::TableNotFound(_) => Self::not_found("Requested resource not found"),
            StoreError::IndexNotFound { index, .. } => Self::validation(format!(
                "The table does not have the specified index: {index}"
            )),
            StoreError::Throttled => Self::throttled(),
            StoreError::Unavailable(_) => Self::internal(&error),
        }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::ConditionFailed { old } => Self::condition_failed(old.as_deref()),
            WriteError::Store(error) => error.into(),
        }
    }
}

impl From<TransactError> for Failure {
    fn from(error: TransactError) -> Self {
        match error {
            TransactError::Cancelled(reasons) => match empty_key(&reasons) {
                Some(invalid) => Self::validation(invalid_text(invalid)),
                None => Self::cancelled(&reasons),
            },
            TransactError::TokenMismatch => Self {
                capital: true,
                ..Self::new(
                    DYNAMODB,
                    "IdempotentParameterMismatchException",
                    "The transaction request was rejected because the client token was used with different request parameters",
                )
            },
            TransactError::Store(error) => error.into(),
        }
    }
}

impl From<TableError> for Failure {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Exists(name) => Self::in_use(format!("Table already exists: {name}")),
            TableError::Missing(name) => Self::table_not_found(&name),
            TableError::IndexExists { .. } => {
                Self::validation("Attempting to create an index which already exists")
            }
            TableError::IndexNotFound { .. } => Self::not_found("Requested resource not found"),
            TableError::Store(error) => error.into(),
            other => Self::validation(other.to_string()),
        }
    }
}

impl From<StreamError> for Failure {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::StreamMissing => {
                Self::not_found("Requested resource not found: Stream not found")
            }
            StreamError::ShardMissing => Self::shard_not_found(),
            StreamError::Trimmed => Self::new(
                DYNAMODB,
                "TrimmedDataAccessException",
                "The operation attempted to read past the oldest stream record in a shard.",
            ),
            StreamError::Store(error) => error.into(),
        }
    }
}

impl From<TableBackupError> for Failure {
    fn from(error: TableBackupError) -> Self {
        match error {
            TableBackupError::TableNotFound(name) => Self::table_missing(&name),
            TableBackupError::Missing(id) => Self::backup_not_found(&id),
            TableBackupError::InUse(id) => Self::backup_in_use(&id),
            TableBackupError::TooMany => Self::limit_exceeded(
                "Too many backups are kept or being made: delete some, or wait until they are made",
            ),
            TableBackupError::Store(error) => error.into(),
        }
    }
}

impl From<RestoreError> for Failure {
    fn from(error: RestoreError) -> Self {
        match error {
            RestoreError::TargetExists(name) => Self::new(
                DYNAMODB,
                "TableAlreadyExistsException",
                format!("Table already exists: {name}"),
            ),
            RestoreError::SourceMissing(name) => Self::table_missing(&name),
            RestoreError::BackupMissing(id) => Self::backup_not_found(&id),
            RestoreError::HistoryOff(name) => Self::new(
                DYNAMODB,
                "PointInTimeRecoveryUnavailableException",
                format!("Point in time recovery is not enabled for table '{name}'"),
            ),
            RestoreError::OutOfReach { .. } => Self::new(
                DYNAMODB,
                "InvalidRestoreTimeException",
                "An invalid restore time was specified. RestoreDateTime must be between EarliestRestorableDateTime and LatestRestorableDateTime.",
            ),
            RestoreError::TooMany => {
                Self::limit_exceeded("Too many tables are being restored: wait until they are")
            }
            RestoreError::Table(error) => error.into(),
            RestoreError::Store(error) => error.into(),
            other @ (RestoreError::DifferentKeys | RestoreError::Backup(_)) => {
                Self::internal(&other)
            }
        }
    }
}

impl From<DecodeError> for Failure {
    fn from(error: DecodeError) -> Self {
        Self::internal(&error)
    }
}

impl From<ExpressionError> for Failure {
    fn from(error: ExpressionError) -> Self {
        let failure = Self::validation(error.to_string());
        match error {
            ExpressionError::Invalid {
                kind,
                problem: ExpressionProblem::TooLong(_),
            } => {
                let short = ExpressionError::Invalid {
                    kind,
                    problem: ExpressionProblem::UpdateTooLong,
                };
                failure.with_short_text(short.to_string())
            }
            _ => failure,
        }
    }
}

impl From<PlaceholderError> for Failure {
    fn from(error: PlaceholderError) -> Self {
        let failure = Self::validation(error.to_string());
        match error {
            PlaceholderError::Syntax { .. } | PlaceholderError::TooLong { .. } => {
                failure.never_counted()
            }
            PlaceholderError::Unused { .. } => failure,
        }
    }
}

impl From<ItemError> for Failure {
    fn from(error: ItemError) -> Self {
        let failure = Self::validation(error.to_string());
        match error {
            ItemError::TooLarge => failure.never_counted(),
            _ => failure,
        }
    }
}

impl From<KeyConditionError> for Failure {
    fn from(error: KeyConditionError) -> Self {
        Self::validation(error.to_string())
    }
}
