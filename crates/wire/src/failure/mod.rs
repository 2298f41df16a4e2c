//! The errors of the protocol: the type, status and text that clients get.

use homeport_engine::{RestoreError, StreamError, TableBackupError, TableError};
use homeport_item::Item;
use homeport_item::binary::DecodeError;
use homeport_item::expression::{
    ExpressionError, ExpressionProblem, KeyConditionError, PlaceholderError,
};
use homeport_item::item::ItemError;
use homeport_item::json;
use homeport_item::schema::KeyError;
use homeport_listen::OriginRefused;
use homeport_store::{CancelReason, InvalidRequest, StoreError, TransactError, WriteError};

const DYNAMODB: &str = "com.amazonaws.dynamodb.v20120810#";
const SERVICE: &str = "com.amazon.coral.service#";
const VALIDATE: &str = "com.amazon.coral.validate#";

const VALIDATION: &str = "ValidationException";
const NOT_FOUND: &str = "ResourceNotFoundException";
pub(crate) const ACCESS_DENIED: &str = "AccessDeniedException";

/// The beginning of a text that counts one validation error.
const ONE_COUNTED: &str = "1 validation error detected: ";

/// An error response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    status: u16,
    namespace: &'static str,
    kind: &'static str,
    text: Option<String>,
    /// Some errors have `Message` with a capital letter.
    capital: bool,
    /// Further members of the body, each preceded by a comma.
    members: Vec<u8>,
    /// How PutItem, UpdateItem and DeleteItem word it.
    counted: CountedText,
}

/// The text of a validation failure in PutItem, UpdateItem and DeleteItem. They begin most texts with the number of errors and
/// leave out some details.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct CountedText {
    /// The text without its details, if it has any.
    short: Option<String>,
    /// The text never begins with a number, or has it already.
    is_final: bool,
}

impl Failure {
    fn new(namespace: &'static str, kind: &'static str, text: impl Into<String>) -> Self {
        Self {
            status: 400,
            namespace,
            kind,
            text: Some(text.into()),
            capital: false,
            members: Vec::new(),
            counted: CountedText::default(),
        }
    }

    pub(crate) fn validation(text: impl Into<String>) -> Self {
        Self::new(VALIDATE, VALIDATION, text)
    }

    /// A validation failure whose text is a list of violations with their number.
    pub(crate) fn violations(text: impl Into<String>) -> Self {
        Self::validation(text).never_counted()
    }

    /// The same failure with the same text in every operation.
    pub(crate) fn never_counted(mut self) -> Self {
        self.counted.is_final = true;
        self
    }

    /// The same failure, with a shorter text in PutItem, UpdateItem and DeleteItem.
    pub(crate) fn with_short_text(mut self, text: impl Into<String>) -> Self {
        self.counted.short = Some(text.into());
        self
    }

    /// The failure as PutItem, UpdateItem and DeleteItem word it.
    pub(crate) fn counted(mut self) -> Self {
        if self.kind != VALIDATION {
            return self;
        }
        let counted = std::mem::take(&mut self.counted);
        if let Some(text) = counted.short.or(self.text.take()) {
            let prefix = if counted.is_final { "" } else { ONE_COUNTED };
            self.text = Some(format!("{prefix}{text}"));
        }
        self
    }

    /// An invalid value, with the usual beginning of the text.
    pub(crate) fn invalid_values(text: impl std::fmt::Display) -> Self {
        Self::validation(format!("One or more parameter values were invalid: {text}"))
    }

    /// A compressed body that exceeds the size limit when decoded.
    pub(crate) fn body_too_large() -> Self {
        Self {
            status: 413,
            ..Self::new(
                SERVICE,
                "RequestEntityTooLargeException",
                "The decoded body is larger than 16 MB",
            )
        }
    }

    /// A start key in a query that finds at most one item.
    pub(crate) fn not_restartable() -> Self {
        Self::validation("The query can return at most one row and cannot be restarted")
    }

    pub(crate) fn serialization(text: Option<&str>) -> Self {
        Self {
            text: text.map(str::to_owned),
            capital: true,
            ..Self::new(SERVICE, "SerializationException", "")
        }
    }

    pub(crate) fn unknown_operation() -> Self {
        Self {
            text: None,
            ..Self::new(SERVICE, "UnknownOperationException", "")
        }
    }

    pub(crate) fn not_found(text: impl Into<String>) -> Self {
        Self::new(DYNAMODB, NOT_FOUND, text)
    }

    pub(crate) fn table_not_found(name: &str) -> Self {
        Self::not_found(format!(
            "Requested resource not found: Table: {name} not found"
        ))
    }

    /// The error of operations on backups for a missing table.
    pub(crate) fn table_missing(name: &str) -> Self {
        Self::new(
            DYNAMODB,
            "TableNotFoundException",
            format!("Table not found: {name}"),
        )
    }

    pub(crate) fn in_use(text: impl Into<String>) -> Self {
        Self::new(DYNAMODB, "ResourceInUseException", text)
    }

    pub(crate) fn limit_exceeded(text: impl Into<String>) -> Self {
        Self::new(DYNAMODB, "LimitExceededException", text)
    }

    /// The table is still being restored and cannot be changed.
    pub(crate) fn being_created(name: &str) -> Self {
        Self::in_use(format!(
            "Attempt to change a resource which is still in use: Table is being created: {name}"
        ))
    }

    pub(crate) fn backup_not_found(arn: &str) -> Self {
        Self::new(
            DYNAMODB,
            "BackupNotFoundException",
            format!("Backup not found: {arn}"),
        )
    }

    pub(crate) fn export_not_found(arn: &str) -> Self {
        Self::new(
            DYNAMODB,
            "ExportNotFoundException",
            format!("Export not found: {arn}"),
        )
    }

    pub(crate) fn import_not_found(arn: &str) -> Self {
        Self::new(
            DYNAMODB,
            "ImportNotFoundException",
            format!("Import not found: {arn}"),
        )
    }

    pub(crate) fn export_conflict() -> Self {
        Self::new(
            DYNAMODB,
            "ExportConflictException",
            "The client token was used with other parameters",
        )
    }

    pub(crate) fn import_conflict() -> Self {
        Self::new(
            DYNAMODB,
            "ImportConflictException",
            "The client token was used with other parameters",
        )
    }

    pub(crate) fn invalid_export_time() -> Self {
        Self::new(
            DYNAMODB,
            "InvalidExportTimeException",
            "The specified ExportTime is outside of the point in time recovery window.",
        )
    }

    pub(crate) fn backup_in_use(id: &str) -> Self {
        Self::new(
            DYNAMODB,
            "BackupInUseException",
            format!("Backup is being used by another operation: {id}"),
        )
    }

    pub(crate) fn expired_iterator() -> Self {
        Self::new(
            DYNAMODB,
            "ExpiredIteratorException",
            "The shard iterator has expired and can no longer be used to retrieve stream records.",
        )
    }

    pub(crate) fn shard_not_found() -> Self {
        Self::not_found("Requested resource not found: Shard does not exist")
    }

    /// A missing or invalid signature.
    pub(crate) fn unsigned(kind: &'static str, text: impl Into<String>) -> Self {
        Self::new(SERVICE, kind, text)
    }

    /// A request without permission.
    pub(crate) fn access_denied(text: impl Into<String>) -> Self {
        Self {
            capital: true,
            ..Self::new(SERVICE, ACCESS_DENIED, text)
        }
    }

    /// A request with an origin or host that is not allowed.
    pub(crate) fn origin_refused(reason: OriginRefused) -> Self {
        Self {
            status: 403,
            ..Self::access_denied(reason.to_string())
        }
    }

    fn condition_failed(old: Option<&Item>) -> Self {
        let mut failure = Self::new(
            DYNAMODB,
            "ConditionalCheckFailedException",
            CONDITION_FAILED,
        );
        if let Some(old) = old {
            failure.members.extend_from_slice(b",\"Item\":");
            json::write_item(old, &mut failure.members);
        }
        failure
    }

    fn throttled() -> Self {
        Self::new(
            DYNAMODB,
            "ProvisionedThroughputExceededException",
            "The level of configured provisioned throughput for the table was exceeded. Consider increasing your provisioning level with the UpdateTable API.",
        )
    }

    /// An internal error. It is logged; the client gets no details.
    pub(crate) fn internal(error: &dyn std::fmt::Display) -> Self {
        tracing::error!(%error, "request failed");
        Self {
            status: 500,
            ..Self::new(DYNAMODB, "InternalServerError", "Internal server error")
        }
    }

    fn cancelled(reasons: &[CancelReason]) -> Self {
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

    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    #[cfg(test)]
    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// The name of the error.
    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    /// Writes the failure of one statement of a batch, where errors have shorter names.
    pub(crate) fn write_of_statement(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"Code\":");
        json::write_string(statement_code(self.kind), out);
        if let Some(text) = &self.text {
            out.extend_from_slice(b",\"Message\":");
            json::write_string(text, out);
        }
        out.extend_from_slice(&self.members);
        out.push(b'}');
    }

    /// Whether the request is invalid, so that nothing was done.
    pub(crate) fn is_validation(&self) -> bool {
        self.kind == VALIDATION
    }

    /// The item to insert already exists.
    pub(crate) fn duplicate_item() -> Self {
        Self::new(DYNAMODB, "DuplicateItemException", DUPLICATE_ITEM)
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

    /// The JSON of the response.
    pub(crate) fn body(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        out.extend_from_slice(b"{\"__type\":\"");
        out.extend_from_slice(self.namespace.as_bytes());
        out.extend_from_slice(self.kind.as_bytes());
        out.push(b'"');
        if let Some(text) = &self.text {
            out.extend_from_slice(if self.capital {
                b",\"Message\":"
            } else {
                b",\"message\":"
            });
            json::write_string(text, &mut out);
        }
        out.extend_from_slice(&self.members);
        out.push(b'}');
        out
    }
}

const CONDITION_FAILED: &str = "The conditional request failed";
const DUPLICATE_ITEM: &str = "Duplicate primary key exists in table";

/// The code of an error in the response to a batch of statements.
fn statement_code(kind: &'static str) -> &'static str {
    match kind {
        VALIDATION => "ValidationError",
        other => other.strip_suffix("Exception").unwrap_or(other),
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
fn empty_key(reasons: &[CancelReason]) -> Option<&InvalidRequest> {
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

/// DynamoDB's text for an invalid request.
fn invalid_text(invalid: &InvalidRequest) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(failure: &Failure, body: &str) {
        assert_eq!(String::from_utf8_lossy(&failure.body()), body);
    }

    #[test]
    fn bodies_have_dynamodb_form() {
        check(
            &Failure::validation("bad \"x\""),
            r#"{"__type":"com.amazon.coral.validate#ValidationException","message":"bad \"x\""}"#,
        );
        check(
            &Failure::serialization(None),
            r#"{"__type":"com.amazon.coral.service#SerializationException"}"#,
        );
        check(
            &StoreError::TableNotFound("t".to_owned()).into(),
            r#"{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"Requested resource not found"}"#,
        );
        check(
            &WriteError::ConditionFailed {
                old: Some(Box::new(Item::new().with("a", "b"))),
            }
            .into(),
            r#"{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"The conditional request failed","Item":{"a":{"S":"b"}}}"#,
        );
        check(
            &TransactError::Cancelled(vec![
                CancelReason::None,
                CancelReason::ConditionFailed { old: None },
            ])
            .into(),
            r#"{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"Transaction cancelled, please refer cancellation reasons for specific reasons [None, ConditionalCheckFailed]","CancellationReasons":[{"Code":"None"},{"Code":"ConditionalCheckFailed","Message":"The conditional request failed"}]}"#,
        );
    }

    #[test]
    fn store_errors_are_not_revealed() {
        let failure = Failure::from(StoreError::Unavailable("disk on fire".to_owned()));
        assert_eq!(failure.status(), 500);
        assert_eq!(failure.text(), Some("Internal server error"));
    }
}
