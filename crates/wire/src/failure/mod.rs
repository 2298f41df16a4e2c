//! The errors of the protocol: the type, status and text that clients get.

mod cancelled;
mod wording;

use homeport_item::{Item, json};
use homeport_listen::OriginRefused;

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

#[cfg(test)]
mod tests {
    use super::*;
    use homeport_store::{CancelReason, StoreError, TransactError, WriteError};

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
