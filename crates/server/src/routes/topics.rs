//! `/v1/topics/{topic}`: publishing over HTTP; and `/mqtt`, where HTTP's port speaks MQTT over
//! WebSockets.

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use homeport_systems::messages::{
    Delivery, Message, Properties, Publish as _, Publisher, check_topic,
};
use homeport_wire::listen::{Connection, Hosts};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::auth::{Reader, client, cookie};
use crate::body::Body;
use crate::mqtt::access::{Access, SYSTEM};
use crate::mqtt::{NoUpgrade, upgrade};
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use crate::url::UrlQuery;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PublishQuery {
    /// MQTT's QoS for subscribers: 0 or 1
    #[param(minimum = 0, maximum = 1, default = 0)]
    qos: Option<u8>,
    /// Whether the message is kept for those who subscribe later
    #[param(default = false)]
    retain: Option<bool>,
}

/// A message that was published.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Published {
    /// Always `published`
    #[schema(example = "published")]
    status: &'static str,
    topic: String,
}

/// Routes with paths that the OpenAPI document cannot say.
pub(super) fn router() -> Router<AppState> {
    Router::new()
        // A topic's slashes may stand in the address as they are.
        .route("/v1/topics/{*topic}", post(publish_message))
        .route("/mqtt", get(open_websocket))
}

/// Publishes a message: rules run on it, and subscribers get it
///
/// The body is the payload. The answer comes when everything that rules write is durable, and the
/// message is queued for the sessions that must not lose it.
#[utoipa::path(post, path = "/v1/topics/{topic}", tag = "telemetry",
    security(("admin_token" = []), ("device_key" = [])),
    params(("topic" = String, Path, description = "The topic; its slashes may be written as they are or as %2F", min_length = 1, max_length = 1024), PublishQuery),
    request_body(content = String, content_type = "application/octet-stream", description = "The payload"), responses(
    (status = 200, description = "It is published", body = Published),
    (status = 400, description = "The topic or the query is not right", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Neither operator nor key", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "The topic is not one of this key", body = ProblemBody, content_type = "application/problem+json"),
    (status = 413, description = "The payload is larger than a packet may be", body = ProblemBody, content_type = "application/problem+json"),
    (status = 429, description = "Too many requests with this key", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer, or there are too many retained messages", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn publish_message(
    reader: Reader,
    State(state): State<AppState>,
    Path(topic): Path<String>,
    UrlQuery(query): UrlQuery<PublishQuery>,
    Body(payload): Body,
) -> Result<Json<Published>, Problem> {
    reader.check_system(SYSTEM)?;
    let access = match reader.0 {
        Some(key) => Access::Key(key),
        None => Access::Operator,
    };
    check_topic(&topic).map_err(|error| Problem::invalid(error.to_string()))?;
    if !access.may_publish(&topic) {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "OUT_OF_SCOPE",
            "this topic cannot be published on with these credentials",
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
            principal: Some(access.principal()),
        },
        received_at: state.broker.now(),
        properties: Properties::default(),
        hops: 0,
    };
    state.broker.publish(message).await?;
    Ok(Json(Published {
        status: "published",
        topic,
    }))
}

/// Opens a WebSocket for MQTT.
async fn open_websocket(
    State(state): State<AppState>,
    parts: Parts,
    asked: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let asked = asked.map_err(|_| {
        Problem::new(
            StatusCode::UPGRADE_REQUIRED,
            "WEBSOCKET_ONLY",
            "MQTT is spoken here over WebSockets",
        )
    })?;
    let allowed = (state.allowed_origins).check(&parts.headers, &parts.uri, Hosts::Any);
    if let Err(reason) = allowed
        && !cookie::is_ours(&parts.headers, &parts.uri)
    {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "CROSS_SITE",
            reason.to_string(),
        ));
    }
    let connection = parts.extensions.get::<Connection>();
    let client = client(&parts.extensions);
    upgrade(asked, state.broker, connection, client).map_err(|refused| match refused {
        NoUpgrade::OtherProtocol => Problem::invalid("the WebSocket's subprotocol must be mqtt"),
        NoUpgrade::Full(reason) => Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "TOO_MANY_CONNECTIONS",
            format!("{reason}; try again later"),
        )
        .retry_after(1),
    })
}
