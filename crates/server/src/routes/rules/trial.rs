//! `POST /v1/rules/test`

use axum::Json;
use axum::extract::State;
use homeport_systems::rules::{Reason, Trial, TrialOutcome};
use homeport_systems::time::EpochMillis;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::auth::Admin;
use crate::body::Body;
use crate::object::Object;
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use crate::whole::WholeNumber;

/// A statement and a message to try it on.
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
    /// The message, digit for digit
    #[schema(value_type = serde_json::Value)]
    payload: Box<RawValue>,
    client_id: Option<String>,
    /// What `timestamp()` answers, in milliseconds since 1970; now unless given
    #[schema(value_type = Option<i64>)]
    timestamp: Option<WholeNumber>,
}

/// What came of it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StatementTestResult)]
pub(in crate::routes) struct TestResult {
    /// Whether the statement selects the message
    matched: bool,
    /// What it selects
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    result: Option<Box<RawValue>>,
    /// Why it does not select the message
    #[serde(skip_serializing_if = "Option::is_none")]
    unmet: Option<ReasonBody>,
    /// Why parts of it have no value
    undefined: Vec<ReasonBody>,
}

/// A reason with the part of the statement that it is about.
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

/// Try a statement on a message; nothing is written and no action runs
#[utoipa::path(post, path = "/v1/rules/test", tag = "rules", security(("admin_token" = [])),
    request_body = TestStatement, responses(
    (status = 200, description = "What the statement makes of the message, with reasons", body = TestResult),
    (status = 400, description = "The statement or the topic is none; the detail has the place", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn test_statement(
    _: Admin,
    State(state): State<AppState>,
    Body(body): Body,
) -> Result<Json<TestResult>, Problem> {
    let Object(body) = serde_json::from_slice::<Object<TestStatement>>(&body)
        .map_err(|error| Problem::invalid(format!("the body is not as expected: {error}")))?;
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
