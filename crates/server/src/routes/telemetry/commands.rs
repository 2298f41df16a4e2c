//! `POST /v1/telemetry/{thing}/commands`

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use homeport_systems::telemetry::{Command, SentCommand, ThingName};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::auth::Reader;
use crate::body::Body;
use crate::forms;
use crate::forms::telemetry::AddressableThingPath;
use crate::object::Object;
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use crate::url::PathPart;

/// What a thing is to do.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::routes) struct SendCommand {
    #[schema(schema_with = forms::telemetry::word, example = "heat")]
    command: String,
    /// What the thing gets with it, digit for digit; at most 65536 bytes
    #[serde(default)]
    #[schema(value_type = Option<serde_json::Value>)]
    parameters: Option<Box<RawValue>>,
}

/// A command that was published.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SentCommand)]
pub(in crate::routes) struct SentCommandBody {
    command_id: String,
    /// Where it was published
    #[schema(example = "van/storyteller-van-01/commands")]
    topic: String,
    /// Milliseconds since 1970
    timestamp: i64,
}

impl From<SentCommand> for SentCommandBody {
    fn from(sent: SentCommand) -> Self {
        Self {
            command_id: sent.command_id.to_string(),
            topic: sent.topic,
            timestamp: sent.issued_at.0,
        }
    }
}

/// Publish a command on `van/{thing}/commands` at QoS 1
#[utoipa::path(post, path = "/v1/telemetry/{thing}/commands", tag = "telemetry",
    security(("admin_token" = []), ("device_key" = [])),
    params(AddressableThingPath), request_body = SendCommand, responses(
    (status = 202, description = "It was published", body = SentCommandBody),
    (status = 400, description = "Something is not as it should be", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Neither operator nor device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "The key is of another system or for other things", body = ProblemBody, content_type = "application/problem+json"),
    (status = 429, description = "Too many requests with this key", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "It cannot be kept now", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn send_command(
    caller: Reader,
    State(state): State<AppState>,
    PathPart(thing): PathPart<ThingName>,
    Body(body): Body,
) -> Result<(StatusCode, Json<SentCommandBody>), Problem> {
    super::check(&caller, Some(&thing))?;
    let Object(body) = serde_json::from_slice::<Object<SendCommand>>(&body)
        .map_err(|error| Problem::invalid(format!("the body is not as expected: {error}")))?;
    let command = Command {
        name: body.command.parse()?,
        parameters: body.parameters,
    };
    let principal = match &caller.0 {
        Some(key) => key.key_id.to_string(),
        None => "admin".to_owned(),
    };
    let sent = state
        .telemetry
        .send_command(&thing, &command, Some(principal))
        .await?;
    Ok((StatusCode::ACCEPTED, Json(sent.into())))
}
