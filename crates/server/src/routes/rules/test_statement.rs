//! `POST /v1/rules/test`

use axum::Json;
use axum::extract::State;
use homeport_systems::rules::{Reason, Trial, TrialOutcome};
use homeport_systems::time::EpochMillis;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::auth::needs::ManageRules;
use crate::auth::{Authenticated, Everywhere};
use crate::problem::Problem;
use crate::request::{Body, WholeNumber, parse_object};
use crate::state::AppState;

/// A statement and a message to test it on.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(in crate::routes) struct TestStatement {
    #[schema(example = "SELECT *, topic(2) AS thing FROM 'van/+/telemetry' WHERE volts < 12")]
    sql: String,
    #[schema(
        min_length = 1,
        max_length = 65_535,
        pattern = "^[^+#\\u0000]+$",
        example = "van/storyteller-van-01/telemetry"
    )]
    topic: String,
    /// The message; numbers keep every digit
    #[schema(value_type = serde_json::Value)]
    payload: Box<RawValue>,
    client_id: Option<String>,
    /// Result of `timestamp()` in milliseconds since 1970; now if absent
    #[schema(value_type = Option<i64>)]
    timestamp: Option<WholeNumber>,
}

/// The result of a test.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StatementTestResult)]
pub(in crate::routes) struct TestResult {
    /// Whether the message matches the statement
    matched: bool,
    /// The selected result
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    result: Option<Box<RawValue>>,
    /// Why the message does not match
    #[serde(skip_serializing_if = "Option::is_none")]
    unmet: Option<ReasonBody>,
    /// Why parts of the statement are undefined
    undefined: Vec<ReasonBody>,
}

/// A reason, with the part of the statement that it concerns.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StatementTestReason)]
struct ReasonBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    expression: String,
    reason: String,
}

impl From<Reason> for ReasonBody {
    fn from(reason: Reason) -> Self {
        Self {
            line: reason.place.map(|(line, _)| line),
            column: reason.place.map(|(_, column)| column),
            expression: reason.text,
            reason: reason.reason,
        }
    }
}

impl TestResult {
    fn new(outcome: TrialOutcome) -> Result<Self, Problem> {
        let result = outcome.result.map(RawValue::from_string).transpose();
        Ok(Self {
            matched: matches!(result, Ok(Some(_))),
            result: result.map_err(|error| Problem::internal(&error))?,
            unmet: outcome.unmet.map(ReasonBody::from),
            undefined: outcome
                .undefined
                .into_iter()
                .map(ReasonBody::from)
                .collect(),
        })
    }
}

/// Test a statement on a message; nothing is written and no action runs
#[utoipa::path(post, path = "/v1/rules/test", tag = "rules", security(("admin_token" = [])),
    request_body = TestStatement, responses(
    (status = 200, description = "The result and the reasons for it", body = TestResult),
    (status = 400, description = "Invalid statement or topic; the detail names the position"),
))]
pub(in crate::routes) async fn test_statement(
    _: Authenticated<Everywhere<ManageRules>>,
    State(state): State<AppState>,
    Body(body): Body,
) -> Result<Json<TestResult>, Problem> {
    let body: TestStatement = parse_object(&body)?;
    let trial = Trial {
        sql: body.sql,
        topic: body.topic,
        payload: body.payload.get().as_bytes().to_vec(),
        client_id: body.client_id,
        received_at: body.timestamp.map_or_else(
            || state.rules.trial_time(),
            |timestamp| EpochMillis(timestamp.0),
        ),
    };
    Ok(Json(TestResult::new(trial.run()?)?))
}
