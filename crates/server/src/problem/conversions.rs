//! The errors of the systems as problems.

use axum::http::StatusCode;
use homeport_store::StoreError;
use homeport_systems::alerts::AlertsError;
use homeport_systems::api_keys::ApiKeyError;
use homeport_systems::browse::BrowseError;
use homeport_systems::chargers::ChargersError;
use homeport_systems::chargers::decoders::{DecodersError, InvalidDecoder};
use homeport_systems::cursor::CursorError;
use homeport_systems::export::ExportError;
use homeport_systems::fleet::FleetError;
use homeport_systems::live::LiveError;
use homeport_systems::messages::IntakeError;
use homeport_systems::people::PeopleError;
use homeport_systems::push::PushError;
use homeport_systems::records::RecordsError;
use homeport_systems::rules::{RuleError, TrialError};
use homeport_systems::sensors::{InvalidField, SensorsError};
use homeport_systems::telemetry::TelemetryError;
use homeport_systems::time::TimeInFuture;

use super::Problem;
use crate::auth::UserTokenError;
use crate::mqtt::{NoClient, PublishRefusal};
use crate::routes::chargers::{INVALID_EVENT, InvalidItem, OUT_OF_SCOPE};

/// Wait before a retry when the store or a key set is unavailable.
const RETRY_AFTER_SECS: u64 = 1;
/// Wait before a retry when a queue or a reader limit is full.
const QUEUE_RETRY_AFTER_SECS: u64 = 10;

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            // A missing table of a system is an outage, and not an empty result.
            StoreError::Throttled
            | StoreError::Unavailable(_)
            | StoreError::TableNotFound(_)
            | StoreError::IndexNotFound { .. } => {
                tracing::warn!(%error, "the store is unavailable");
                Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "STORE_UNAVAILABLE",
                    "the store is unavailable; try again later",
                )
                .retry_after(RETRY_AFTER_SECS)
            }
            StoreError::Invalid(_) => Self::internal(&error),
        }
    }
}

impl From<CursorError> for Problem {
    fn from(error: CursorError) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "INVALID_CURSOR", error.to_string())
    }
}

impl From<NoClient> for Problem {
    fn from(error: NoClient) -> Self {
        let detail = error.to_string();
        match error {
            NoClient::Missing => Self::new(StatusCode::NOT_FOUND, "CLIENT_NOT_FOUND", detail),
            NoClient::Ambiguous(_) => Self::new(StatusCode::CONFLICT, "CLIENT_AMBIGUOUS", detail),
            NoClient::Store(error) => error.into(),
        }
    }
}

impl From<TimeInFuture> for Problem {
    fn from(error: TimeInFuture) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            TimeInFuture::CODE,
            error.to_string(),
        )
    }
}

impl From<InvalidField> for Problem {
    fn from(error: InvalidField) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<SensorsError> for Problem {
    fn from(error: SensorsError) -> Self {
        let missing = |code| Self::new(StatusCode::NOT_FOUND, code, error.to_string());
        match error {
            SensorsError::DeviceMissing(_) => missing("DEVICE_NOT_FOUND"),
            SensorsError::NoReadings(_) => missing("NO_READINGS"),
            SensorsError::ReadingMissing => missing("READING_NOT_FOUND"),
            SensorsError::BeingDecommissioned(_) => Self::new(
                StatusCode::CONFLICT,
                "DEVICE_BEING_DECOMMISSIONED",
                error.to_string(),
            ),
            SensorsError::Cursor(error) => error.into(),
            SensorsError::Malformed { .. } => Self::internal(&error),
            SensorsError::Store(error) => error.into(),
        }
    }
}

impl From<ChargersError> for Problem {
    fn from(error: ChargersError) -> Self {
        match error {
            ChargersError::DeviceMissing(_) => {
                Self::new(StatusCode::NOT_FOUND, "DEVICE_NOT_FOUND", error.to_string())
            }
            ChargersError::EventMissing(..) => {
                Self::new(StatusCode::NOT_FOUND, "EVENT_NOT_FOUND", error.to_string())
            }
            ChargersError::Invalid(error) => error.into(),
            ChargersError::Cursor(error) => error.into(),
            ChargersError::Malformed { .. } => Self::internal(&error),
            ChargersError::Store(error) => error.into(),
        }
    }
}

impl From<ApiKeyError> for Problem {
    fn from(error: ApiKeyError) -> Self {
        match error {
            ApiKeyError::Invalid(_) | ApiKeyError::InvalidScope { .. } => {
                Self::invalid(error.to_string())
            }
            ApiKeyError::Missing(_) => {
                Self::new(StatusCode::NOT_FOUND, "KEY_NOT_FOUND", error.to_string())
            }
            ApiKeyError::Cursor(error) => error.into(),
            ApiKeyError::WrongPepper | ApiKeyError::Malformed(_) => Self::internal(&error),
            ApiKeyError::Store(error) => error.into(),
        }
    }
}

impl From<RecordsError> for Problem {
    fn from(error: RecordsError) -> Self {
        let missing = || Self::new(StatusCode::NOT_FOUND, "ERROR_NOTFOUND", error.to_string());
        match error {
            RecordsError::Invalid(error) => error.into(),
            RecordsError::EncodedId => {
                Self::new(StatusCode::BAD_REQUEST, "FORMAT_INVALID", error.to_string())
            }
            RecordsError::TagMissing(_)
            | RecordsError::GroupMissing
            | RecordsError::DeviceMissing
            | RecordsError::JournalMissing
            | RecordsError::RecordMissing => missing(),
            RecordsError::ExternalIdTaken => Self::new(
                StatusCode::CONFLICT,
                "DUPLICATE_RESOURCE",
                error.to_string(),
            ),
            RecordsError::PolicyDenied => {
                Self::new(StatusCode::FORBIDDEN, "DENIED_BY_POLICY", error.to_string())
            }
            RecordsError::RecordIdReused => {
                Self::new(StatusCode::CONFLICT, "RECORD_ID_REUSED", error.to_string())
            }
            RecordsError::TagExists(_) => Self::new(
                StatusCode::CONFLICT,
                "DUPLICATE_RESOURCE",
                error.to_string(),
            ),
            RecordsError::TagExhausted(_) => {
                Self::new(StatusCode::CONFLICT, "IDS_EXHAUSTED", error.to_string())
            }
            RecordsError::TimeOccupied => Self::new(
                StatusCode::CONFLICT,
                "TIMESTAMP_OCCUPIED",
                error.to_string(),
            ),
            RecordsError::Cursor(error) => error.into(),
            RecordsError::Malformed(_) => Self::internal(&error),
            RecordsError::Store(error) => error.into(),
        }
    }
}

impl From<PublishRefusal> for Problem {
    fn from(refusal: PublishRefusal) -> Self {
        let (status, code) = match &refusal {
            PublishRefusal::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "PAYLOAD_TOO_LARGE"),
            PublishRefusal::NoSubscriber(_) => (StatusCode::CONFLICT, "NO_SUBSCRIBER"),
            PublishRefusal::RetainedFull => (StatusCode::SERVICE_UNAVAILABLE, "RETAINED_FULL"),
        };
        Self::new(status, code, refusal.to_string())
    }
}

impl From<UserTokenError> for Problem {
    fn from(error: UserTokenError) -> Self {
        match error {
            UserTokenError::Invalid(_) => {
                Self::new(StatusCode::UNAUTHORIZED, "TOKEN_INVALID", error.to_string())
            }
            UserTokenError::KeysUnavailable(_) => {
                tracing::warn!(%error, "could not verify a user token");
                Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "KEYS_UNAVAILABLE",
                    "user tokens cannot be verified now; try again later",
                )
                .retry_after(RETRY_AFTER_SECS)
            }
        }
    }
}

impl From<PushError> for Problem {
    fn from(error: PushError) -> Self {
        let with = |status, code| Self::new(status, code, error.to_string());
        match error {
            PushError::Invalid(error) => error.into(),
            PushError::DeviceMissing => with(StatusCode::NOT_FOUND, "DEVICE_NOT_FOUND"),
            PushError::NotificationMissing => with(StatusCode::NOT_FOUND, "NOTIFICATION_NOT_FOUND"),
            PushError::BroadcastMissing => with(StatusCode::NOT_FOUND, "BROADCAST_NOT_FOUND"),
            PushError::BroadcastFinished => with(StatusCode::CONFLICT, "BROADCAST_FINISHED"),
            PushError::TooManyBroadcasts => with(StatusCode::CONFLICT, "TOO_MANY_BROADCASTS"),
            PushError::TooManyDevices => with(StatusCode::CONFLICT, "TOO_MANY_DEVICES"),
            PushError::KeyReused => with(StatusCode::CONFLICT, "IDEMPOTENCY_KEY_REUSED"),
            PushError::OutboxFull => with(StatusCode::SERVICE_UNAVAILABLE, "OUTBOX_FULL")
                .retry_after(QUEUE_RETRY_AFTER_SECS),
            PushError::Cursor(error) => error.into(),
            PushError::Malformed(_) => Self::internal(&error),
            PushError::Store(error) => error.into(),
        }
    }
}

impl From<TelemetryError> for Problem {
    fn from(error: TelemetryError) -> Self {
        match error {
            TelemetryError::Invalid(error) => error.into(),
            TelemetryError::NoMessage(_) => {
                Self::new(StatusCode::NOT_FOUND, "NO_MESSAGE", error.to_string())
            }
            TelemetryError::Cursor(error) => error.into(),
            TelemetryError::Store(error) => error.into(),
        }
    }
}

impl From<RuleError> for Problem {
    fn from(error: RuleError) -> Self {
        let with = |status, code| Self::new(status, code, error.to_string());
        match error {
            RuleError::Field(error) => error.into(),
            RuleError::Invalid { .. }
            | RuleError::Statement(_)
            | RuleError::TableNotFound { .. } => with(StatusCode::BAD_REQUEST, "INVALID_RULE"),
            RuleError::Missing(_) => with(StatusCode::NOT_FOUND, "RULE_NOT_FOUND"),
            RuleError::VersionMissing(_) => with(StatusCode::NOT_FOUND, "VERSION_NOT_FOUND"),
            RuleError::Exists(_) => with(StatusCode::CONFLICT, "RULE_EXISTS"),
            RuleError::InFile(_) => with(StatusCode::CONFLICT, "RULE_IN_FILE"),
            RuleError::TooMany => with(StatusCode::CONFLICT, "TOO_MANY_RULES"),
            RuleError::Changed { .. } => with(StatusCode::PRECONDITION_FAILED, "RULE_CHANGED"),
            RuleError::Cursor(error) => error.into(),
            RuleError::Malformed(_) => Self::internal(&error),
            RuleError::Store(error) => error.into(),
        }
    }
}

impl From<InvalidDecoder> for Problem {
    fn from(error: InvalidDecoder) -> Self {
        let detail = error.to_string();
        Self::new(StatusCode::BAD_REQUEST, "INVALID_DECODER", detail)
    }
}

impl From<DecodersError> for Problem {
    fn from(error: DecodersError) -> Self {
        let with = |status, code| Self::new(status, code, error.to_string());
        match error {
            DecodersError::Invalid(error) => error.into(),
            DecodersError::Missing(_) => with(StatusCode::NOT_FOUND, "DECODER_NOT_FOUND"),
            DecodersError::VersionMissing(_) => with(StatusCode::NOT_FOUND, "VERSION_NOT_FOUND"),
            DecodersError::TooMany => with(StatusCode::CONFLICT, "TOO_MANY_DECODERS"),
            DecodersError::Changed { .. } => {
                with(StatusCode::PRECONDITION_FAILED, "DECODER_CHANGED")
            }
            DecodersError::Cursor(error) => error.into(),
            DecodersError::Malformed(_) => Self::internal(&error),
            DecodersError::Store(error) => error.into(),
        }
    }
}

impl From<InvalidItem> for Problem {
    fn from(invalid: InvalidItem) -> Self {
        let status = match invalid.code {
            INVALID_EVENT => return Self::invalid(format!("invalid body: {}", invalid.reason)),
            OUT_OF_SCOPE => StatusCode::FORBIDDEN,
            _ => StatusCode::BAD_REQUEST,
        };
        Self::new(status, invalid.code, invalid.reason)
    }
}

impl From<IntakeError> for Problem {
    fn from(error: IntakeError) -> Self {
        match error {
            IntakeError::Refused(reason) => {
                Self::new(StatusCode::BAD_REQUEST, "INVALID_UPLINK", reason)
            }
            IntakeError::Store(error) => error.into(),
        }
    }
}

impl From<TrialError> for Problem {
    fn from(error: TrialError) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "INVALID_RULE", error.to_string())
    }
}

impl From<AlertsError> for Problem {
    fn from(error: AlertsError) -> Self {
        let with = |status, code| Self::new(status, code, error.to_string());
        match error {
            AlertsError::Invalid(error) => error.into(),
            AlertsError::Unavailable(_) => with(StatusCode::CONFLICT, "TARGET_UNAVAILABLE"),
            AlertsError::TooManyDefinitions => with(StatusCode::CONFLICT, "TOO_MANY_DEFINITIONS"),
            AlertsError::TooManyPreviews => {
                with(StatusCode::SERVICE_UNAVAILABLE, "TOO_MANY_PREVIEWS")
                    .retry_after(QUEUE_RETRY_AFTER_SECS)
            }
            AlertsError::DefinitionMissing => with(StatusCode::NOT_FOUND, "DEFINITION_NOT_FOUND"),
            AlertsError::AlertMissing => with(StatusCode::NOT_FOUND, "ALERT_NOT_FOUND"),
            AlertsError::AlreadyAcknowledged => with(StatusCode::CONFLICT, "ALREADY_ACKNOWLEDGED"),
            AlertsError::AlertCleared => with(StatusCode::CONFLICT, "ALERT_CLEARED"),
            AlertsError::TooManySnoozes => with(StatusCode::CONFLICT, "TOO_MANY_SNOOZES"),
            AlertsError::TooManyComments => with(StatusCode::CONFLICT, "TOO_MANY_COMMENTS"),
            AlertsError::NoTargets => with(StatusCode::CONFLICT, "NO_TARGETS"),
            AlertsError::TestMissing => with(StatusCode::NOT_FOUND, "TEST_NOT_FOUND"),
            AlertsError::OutboxFull => with(StatusCode::SERVICE_UNAVAILABLE, "ALERT_OUTBOX_FULL")
                .retry_after(QUEUE_RETRY_AFTER_SECS),
            AlertsError::Cursor(error) => error.into(),
            AlertsError::Malformed(_) => Self::internal(&error),
            AlertsError::Store(error) => error.into(),
        }
    }
}

impl From<PeopleError> for Problem {
    fn from(error: PeopleError) -> Self {
        let with = |status, code| Self::new(status, code, error.to_string());
        match error {
            PeopleError::Invalid(error) => error.into(),
            PeopleError::InvalidRole(_)
            | PeopleError::InvalidToken(_)
            | PeopleError::ReservedName => Self::invalid(error.to_string()),
            PeopleError::InvalidPassword(_) => with(StatusCode::BAD_REQUEST, "INVALID_PASSWORD"),
            PeopleError::Missing(_) => with(StatusCode::NOT_FOUND, "PERSON_NOT_FOUND"),
            PeopleError::CredentialMissing => with(StatusCode::NOT_FOUND, "CREDENTIAL_NOT_FOUND"),
            PeopleError::Exists(_) => with(StatusCode::CONFLICT, "PERSON_EXISTS"),
            PeopleError::LastAdministrator => with(StatusCode::CONFLICT, "LAST_ADMINISTRATOR"),
            PeopleError::TooManyPeople => with(StatusCode::CONFLICT, "TOO_MANY_PEOPLE"),
            PeopleError::TooManyTokens => with(StatusCode::CONFLICT, "TOO_MANY_TOKENS"),
            PeopleError::NoSecondFactor => with(StatusCode::CONFLICT, "NO_SECOND_FACTOR"),
            PeopleError::HasSecondFactor => with(StatusCode::CONFLICT, "SECOND_FACTOR_EXISTS"),
            PeopleError::WrongPassword => with(StatusCode::UNAUTHORIZED, "WRONG_PASSWORD"),
            PeopleError::CodeRequired => with(StatusCode::UNAUTHORIZED, "CODE_REQUIRED"),
            PeopleError::WrongCode => with(StatusCode::UNAUTHORIZED, "WRONG_CODE"),
            PeopleError::InvalidSetup => with(StatusCode::FORBIDDEN, "SETUP_INVALID"),
            PeopleError::NoAccount => with(StatusCode::FORBIDDEN, "SESSION_ONLY"),
            PeopleError::Busy => with(StatusCode::SERVICE_UNAVAILABLE, "TOO_MANY_SIGN_INS")
                .retry_after(RETRY_AFTER_SECS),
            PeopleError::Cursor(error) => error.into(),
            PeopleError::Malformed(_) => Self::internal(&error),
            PeopleError::Store(error) => error.into(),
        }
    }
}

impl From<FleetError> for Problem {
    fn from(error: FleetError) -> Self {
        match error {
            FleetError::DeviceMissing => {
                Self::new(StatusCode::NOT_FOUND, "DEVICE_NOT_FOUND", error.to_string())
            }
            FleetError::SystemMissing { .. } | FleetError::NoValues(_) => {
                Self::invalid(error.to_string())
            }
            FleetError::Invalid(error) => error.into(),
            FleetError::Cursor(error) => error.into(),
            FleetError::Malformed(_) => Self::internal(&error),
            FleetError::Store(error) => error.into(),
        }
    }
}

impl From<BrowseError> for Problem {
    fn from(error: BrowseError) -> Self {
        let with = |status, code| Self::new(status, code, error.to_string());
        match error {
            BrowseError::Invalid(detail) => Self::invalid(detail),
            BrowseError::TableNotFound(_) => with(StatusCode::NOT_FOUND, "TABLE_NOT_FOUND"),
            BrowseError::IndexNotFound(_) => with(StatusCode::NOT_FOUND, "INDEX_NOT_FOUND"),
            BrowseError::Changed => with(StatusCode::CONFLICT, "ITEM_CHANGED"),
            BrowseError::Cursor(error) => error.into(),
            BrowseError::Store(error) => error.into(),
        }
    }
}

impl From<LiveError> for Problem {
    fn from(error: LiveError) -> Self {
        let with = |status, code| Self::new(status, code, error.to_string());
        match error {
            LiveError::Unavailable => with(StatusCode::SERVICE_UNAVAILABLE, "NO_CHANGES"),
            LiveError::TooMany => with(StatusCode::SERVICE_UNAVAILABLE, "TOO_MANY_READERS")
                .retry_after(QUEUE_RETRY_AFTER_SECS),
            LiveError::Position => with(StatusCode::BAD_REQUEST, "INVALID_POSITION"),
            LiveError::Fleet(error) => error.into(),
            LiveError::Store(error) => error.into(),
        }
    }
}

impl From<ExportError> for Problem {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Fleet(error) => error.into(),
            ExportError::Browse(error) => error.into(),
            ExportError::Encoding(_) => Self::internal(&error),
        }
    }
}
