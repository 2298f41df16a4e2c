//! `/v1/topics/{topic}`: publishes messages. `/mqtt`: MQTT over WebSockets.

use std::sync::Arc;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use homeport_listen::{Connection, Hosts};
use homeport_systems::messages::{Delivery, Message, Properties, Publisher, check_topic};
use homeport_systems::telemetry::schema::{COMMANDS, TOPIC_ROOT};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::auth::needs::Write;
use crate::auth::{
    Action, ApiKeysOrPeople, Authenticated, Caller, Forbidden, Subject, client_address, is_tls,
    session_cookie,
};
use crate::mqtt::access::{Access, SYSTEM};
use crate::mqtt::{NoUpgrade, upgrade};
use crate::problem::Problem;
use crate::request::{Body, UrlQuery};
use crate::state::AppState;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PublishQuery {
    /// MQTT QoS: 0 or 1
    #[param(minimum = 0, maximum = 1, default = 0)]
    qos: Option<u8>,
    /// Whether the broker retains the message for later subscribers
    #[param(default = false)]
    retain: Option<bool>,
}

/// A published message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Published {
    /// Always `published`
    #[schema(example = "published")]
    status: &'static str,
    topic: String,
}

/// Routes whose paths OpenAPI cannot describe.
pub(super) fn router() -> Router<AppState> {
    Router::new()
        // The slashes of a topic need no encoding.
        .route("/v1/topics/{*topic}", post(publish_message))
        .route("/mqtt", get(open_websocket))
}

/// Publish a message to rules and subscribers
///
/// The body is the payload. The response is sent when all writes of rules are durable and the message is queued
/// for all durable sessions.
#[utoipa::path(post, path = "/v1/topics/{topic}", tag = "telemetry",
    security(("admin_token" = []), ("device_key" = [])),
    params(("topic" = String, Path, description = "Topic; slashes may be encoded as %2F", min_length = 1, max_length = 1024), PublishQuery),
    request_body(content = String, content_type = "application/octet-stream", description = "Payload"), responses(
    (status = 200, description = "The message is published", body = Published),
    (status = 403, description = "The credentials do not permit this topic"),
    (status = 413, description = "Payload too large for an MQTT packet"),
    (status = 503, description = "Too many retained messages, or the store is unavailable; retry later")
))]
pub(crate) async fn publish_message(
    caller: Authenticated<ApiKeysOrPeople<Write>>,
    State(state): State<AppState>,
    Path(topic): Path<String>,
    UrlQuery(query): UrlQuery<PublishQuery>,
    Body(payload): Body,
) -> Result<Json<Published>, Problem> {
    caller.check(Action::Write, SYSTEM, Subject::None)?;
    check_topic(&topic).map_err(|error| Problem::invalid(error.to_string()))?;
    let access = match &*caller {
        Caller::ApiKey(key) => Access::Key(Arc::clone(key)),
        Caller::Person(_) => {
            check_person(&caller, &topic)?;
            Access::Operator
        }
        Caller::User(_) => return Err(Forbidden::OperatorsOnly.into()),
    };
    if !access.may_publish(&topic) {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "OUT_OF_SCOPE",
            "these credentials do not permit publishing on this topic",
        ));
    }
    let delivery = match query.qos.unwrap_or_default() {
        0 => Delivery::AtMostOnce,
        1 => Delivery::AtLeastOnce,
        _ => return Err(Problem::invalid("qos must be 0 or 1")),
    };
    let retain = query.retain.unwrap_or_default();
    state.broker.check_publish(&topic, payload.len(), retain)?;
    let message = Message {
        topic: topic.clone(),
        payload,
        delivery,
        retain,
        publisher: Publisher {
            client_id: None,
            principal: Some(caller.principal()),
        },
        received_at: state.broker.now(),
        properties: Properties::default(),
        hops: 0,
    };
    state.broker.accept(message).await?;
    Ok(Json(Published {
        status: "published",
        topic,
    }))
}

/// Checks that a person may publish on a topic. Topics that belong to no thing need a role without limits.
fn check_person(caller: &Caller, topic: &str) -> Result<(), Forbidden> {
    let mut levels = topic.split('/');
    match (levels.next(), levels.next(), levels.next()) {
        (Some(TOPIC_ROOT), Some(thing), Some(COMMANDS)) => {
            caller.check(Action::Command, SYSTEM, Subject::One(thing))
        }
        (Some(TOPIC_ROOT), Some(thing), Some(_)) => {
            caller.check(Action::Write, SYSTEM, Subject::One(thing))
        }
        _ => caller.check_everywhere(Action::Write),
    }
}

/// Opens a WebSocket for MQTT.
async fn open_websocket(
    State(state): State<AppState>,
    parts: Parts,
    upgrade_request: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let upgrade_request = upgrade_request.map_err(|_| {
        Problem::new(
            StatusCode::UPGRADE_REQUIRED,
            "WEBSOCKET_ONLY",
            "this path serves MQTT over WebSockets only",
        )
    })?;
    let allowed = (state.allowed_origins).check(
        &parts.headers,
        &parts.uri,
        Hosts::Any,
        is_tls(&parts.extensions),
    );
    if let Err(reason) = allowed
        && !session_cookie::is_from_our_page(&parts)
    {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "CROSS_SITE",
            reason.to_string(),
        ));
    }
    let connection = parts.extensions.get::<Connection>();
    let client = client_address(&parts.extensions);
    upgrade(upgrade_request, state.broker, connection, client).map_err(|refused| match refused {
        NoUpgrade::OtherProtocol => Problem::invalid("the WebSocket's subprotocol must be mqtt"),
        NoUpgrade::Full(reason) => Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "TOO_MANY_CONNECTIONS",
            format!("{reason}; try again later"),
        )
        .retry_after(1),
    })
}
