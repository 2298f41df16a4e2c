//! `POST /v1/telemetry/{thing}/commands`

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use homeport_systems::telemetry::{Command, SentCommand, ThingName, command_topic};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::SYSTEM;
use crate::auth::{Action, ApiKeysOrPeople, Authenticated, Subject, needs};
use crate::openapi::schemas::telemetry::{self as schemas, ThingPath};
use crate::problem::Problem;
use crate::request::{Body, PathPart, parse_object};
use crate::state::AppState;

/// A command to a thing.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::routes) struct SendCommand {
    #[schema(schema_with = schemas::word, example = "heat")]
    command: String,
    /// Parameters, passed on unchanged; at most 65536 bytes
    #[serde(default)]
    #[schema(value_type = Option<serde_json::Value>)]
    parameters: Option<Box<RawValue>>,
}

/// A published command.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SentCommand)]
pub(in crate::routes) struct SentCommandBody {
    command_id: String,
    /// Topic of the command
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
    params(ThingPath), request_body = SendCommand, responses(
    (status = 202, description = "The command is published", body = SentCommandBody),
    (status = 409, description = "The server has a bridge, which does not forward commands, and no client of this \
        server subscribes to the topic: `NO_SUBSCRIBER`"),
))]
pub(in crate::routes) async fn send_command(
    caller: Authenticated<ApiKeysOrPeople<needs::Command>>,
    State(state): State<AppState>,
    PathPart(thing): PathPart<ThingName>,
    Body(body): Body,
) -> Result<(StatusCode, Json<SentCommandBody>), Problem> {
    caller.check(Action::Command, SYSTEM, Subject::One(thing.as_str()))?;
    let body: SendCommand = parse_object(&body)?;
    let command = Command {
        name: body.command.parse()?,
        parameters: body.parameters,
    };
    state.broker.check_command(&command_topic(&thing))?;
    let sent = state
        .telemetry
        .send_command(&state.broker, &thing, &command, Some(caller.principal()))
        .await?;
    Ok((StatusCode::ACCEPTED, Json(sent.into())))
}
