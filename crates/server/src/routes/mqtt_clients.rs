//! `/v1/mqtt/clients`: operators list and disconnect MQTT clients.

use axum::Json;
use axum::extract::State;
use homeport_systems::messages::{Subscription, TopicFilter};
use homeport_systems::time::{EpochMillis, UtcMillis};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::auth::needs::{Manage, Read};
use crate::auth::{Authenticated, Everywhere};
use crate::mqtt::access::Access;
use crate::mqtt::{ClientFilter, ClientProblem, ClientView, ConnectedClient};
use crate::openapi::enums::{MqttClientState, MqttProtocolVersion, MqttTransport};
use crate::problem::Problem;
use crate::request::{PageQuery, PathPart, UrlQuery};
use crate::state::AppState;

/// Clients of one page.
const PAGE_MAX: usize = 1000;
/// Scopes of a client's key in a response.
const SCOPES_SHOWN_MAX: usize = 10;

type Page = PageQuery<PAGE_MAX>;

/// An MQTT client with its session.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct MqttClient {
    client_id: String,
    /// Distinguishes clients with the same id: `admin` for operators, `each` or `any` for keys of the whole system
    /// (`any` with `subscribe_fleet`), and a digest of the scopes for other keys
    owner: String,
    state: MqttClientState,
    /// Since when the client is connected or offline
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    /// Whether the session outlives its connection
    persistent: bool,
    /// How long the session is kept without a connection
    session_expiry_secs: u32,
    /// When the session of an offline client expires
    #[serde(skip_serializing_if = "Option::is_none")]
    session_expires_at: Option<String>,
    /// In a list, the first 10
    subscriptions: Vec<MqttSubscription>,
    subscription_count: usize,
    /// Messages that wait for the client, including some that have expired; absent in a list until the queue is
    /// counted
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_len: Option<usize>,
    /// The connection, or for an offline client the last one since the server started
    #[serde(skip_serializing_if = "Option::is_none")]
    connection: Option<MqttConnection>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_problem: Option<MqttProblem>,
}

/// A connection of an MQTT client.
#[derive(Debug, Serialize, ToSchema)]
struct MqttConnection {
    connected_at: String,
    address: String,
    transport: MqttTransport,
    protocol_version: MqttProtocolVersion,
    /// 0 if the client sends no keep-alive
    keep_alive_secs: u16,
    /// The API key; absent for operators
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<MqttClientKey>,
    /// Messages from the client
    messages_received: u64,
    payload_bytes_received: u64,
    /// Messages to the client
    messages_sent: u64,
    payload_bytes_sent: u64,
}

/// The API key of an MQTT client.
#[derive(Debug, Serialize, ToSchema)]
struct MqttClientKey {
    #[schema(format = Uuid)]
    key_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// The first 10 things that the key is for; all things if empty
    scopes: Vec<String>,
    scope_count: usize,
    permissions: Vec<String>,
}

#[derive(Debug, Serialize, ToSchema)]
struct MqttSubscription {
    #[schema(example = "van/storyteller-van-01/commands")]
    filter: String,
    /// 0 or 1
    qos: u8,
}

/// The last refusal or failure of an MQTT client since the server started.
#[derive(Debug, Serialize, ToSchema)]
struct MqttProblem {
    at: String,
    /// `connection`, `publish` or `subscription`
    kind: &'static str,
    #[schema(example = "not_authorized")]
    reason: &'static str,
    #[schema(example = "the client may not publish on this topic")]
    detail: String,
    /// Topic or topic filter
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<String>,
}

/// A page of MQTT clients, in the order of their ids.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct MqttClientList {
    clients: Vec<MqttClient>,
    /// Cursor of the next page; absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A disconnected MQTT client.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EndedMqttClient {
    client_id: String,
    /// Whether it was connected
    was_connected: bool,
    /// Whether its session and its queue are deleted
    session_deleted: bool,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// State of the clients; both if absent
    #[param(inline)]
    state: Option<MqttClientState>,
    /// Beginning of the client ids
    prefix: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct OwnerQuery {
    /// Owner of the client; required if several clients have this id
    owner: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct EndQuery {
    /// Whether to delete the session and its queue too
    #[param(default = false)]
    session: Option<bool>,
}

fn time(at: EpochMillis) -> String {
    UtcMillis::new(at).to_string()
}

impl From<ClientView> for MqttClient {
    fn from(view: ClientView) -> Self {
        let expires_at = view.expires_at;
        let subscriptions = view.subscriptions.into_iter();
        Self {
            client_id: view.name.client_id.to_string(),
            owner: view.name.owner.to_string(),
            state: view.state.into(),
            since: view.since.map(time),
            persistent: view.expiry_secs > 0,
            session_expiry_secs: view.expiry_secs,
            session_expires_at: expires_at.map(|at| time(EpochMillis(at.0.saturating_mul(1000)))),
            subscriptions: subscriptions.map(MqttSubscription::from).collect(),
            subscription_count: view.subscription_count,
            queue_len: view.queue_len,
            connection: view.client.as_deref().map(MqttConnection::from),
            last_problem: view.last_problem.map(MqttProblem::from),
        }
    }
}

impl From<&ConnectedClient> for MqttConnection {
    fn from(client: &ConnectedClient) -> Self {
        let (messages_received, payload_bytes_received) = client.received.totals();
        let (messages_sent, payload_bytes_sent) = client.sent.totals();
        Self {
            connected_at: time(client.connected_at),
            address: client.peer.address.to_string(),
            transport: client.peer.transport.into(),
            protocol_version: client.version.into(),
            keep_alive_secs: client.keep_alive_secs,
            key: MqttClientKey::of(&client.access),
            messages_received,
            payload_bytes_received,
            messages_sent,
            payload_bytes_sent,
        }
    }
}

impl MqttClientKey {
    fn of(access: &Access) -> Option<Self> {
        let Access::Key(key) = access else {
            return None;
        };
        let scopes = key.scopes.iter().take(SCOPES_SHOWN_MAX);
        Some(Self {
            key_id: key.key_id.to_string(),
            description: key.description.clone(),
            scopes: scopes.cloned().collect(),
            scope_count: key.scopes.len(),
            permissions: key.permissions.iter().map(ToString::to_string).collect(),
        })
    }
}

impl From<(TopicFilter, Subscription)> for MqttSubscription {
    fn from((filter, how): (TopicFilter, Subscription)) -> Self {
        Self {
            filter: filter.to_string(),
            qos: how.delivery.qos(),
        }
    }
}

impl From<ClientProblem> for MqttProblem {
    fn from(problem: ClientProblem) -> Self {
        Self {
            at: time(problem.at),
            kind: problem.kind,
            reason: problem.reason,
            detail: problem.detail.into_owned(),
            topic: problem.topic,
        }
    }
}

/// List MQTT clients: connected ones, and persistent sessions without a connection
#[utoipa::path(get, path = "/v1/mqtt/clients", tag = "telemetry", security(("admin_token" = [])),
    params(ListQuery, Page), responses(
    (status = 200, description = "A page of clients", body = MqttClientList),
))]
pub(super) async fn list_mqtt_clients(
    _: Authenticated<Everywhere<Read>>,
    State(state): State<AppState>,
    UrlQuery(query): UrlQuery<ListQuery>,
    page: Page,
) -> Result<Json<MqttClientList>, Problem> {
    let filter = ClientFilter {
        state: query.state.map(|MqttClientState(state)| state),
        prefix: query.prefix.unwrap_or_default(),
    };
    let page = state
        .broker
        .clients(&filter, page.limit, page.cursor)
        .await?;
    Ok(Json(MqttClientList {
        clients: page.items.into_iter().map(MqttClient::from).collect(),
        next_cursor: page.next.map(|cursor| cursor.encode()),
    }))
}

/// Get an MQTT client with all of its subscriptions
#[utoipa::path(get, path = "/v1/mqtt/clients/{client_id}", tag = "telemetry", security(("admin_token" = [])),
    params(("client_id" = String, Path, description = "Client id", min_length = 1, max_length = 256), OwnerQuery), responses(
    (status = 200, description = "The client", body = MqttClient),
    (status = 404, description = "No client has this id"),
    (status = 409, description = "Several clients have this id; the message has their owners"),
))]
pub(super) async fn get_mqtt_client(
    _: Authenticated<Everywhere<Read>>,
    State(state): State<AppState>,
    PathPart(client_id): PathPart<String>,
    UrlQuery(query): UrlQuery<OwnerQuery>,
) -> Result<Json<MqttClient>, Problem> {
    let owner = query.owner.as_deref();
    let client = state.broker.client(&client_id, owner).await?;
    Ok(Json(client.into()))
}

/// Disconnect an MQTT client
///
/// MQTT 5 clients get the reason code 0x98 (Administrative action). The will is published as the specification says:
/// after its delay, or when the session ends. The client may connect again; revoke its key to prevent that.
#[utoipa::path(delete, path = "/v1/mqtt/clients/{client_id}", tag = "telemetry", security(("admin_token" = [])),
    params(("client_id" = String, Path, description = "Client id", min_length = 1, max_length = 256), OwnerQuery, EndQuery), responses(
    (status = 200, description = "The client is disconnected", body = EndedMqttClient),
    (status = 404, description = "No client has this id"),
    (status = 409, description = "Several clients have this id; the message has their owners"),
))]
pub(super) async fn end_mqtt_client(
    _: Authenticated<Everywhere<Manage>>,
    State(state): State<AppState>,
    PathPart(client_id): PathPart<String>,
    UrlQuery(OwnerQuery { owner }): UrlQuery<OwnerQuery>,
    UrlQuery(EndQuery { session }): UrlQuery<EndQuery>,
) -> Result<Json<EndedMqttClient>, Problem> {
    let session_deleted = session.unwrap_or_default();
    let owner = owner.as_deref();
    let ended = state.broker.end_client(&client_id, owner, session_deleted);
    Ok(Json(EndedMqttClient {
        was_connected: ended.await?,
        session_deleted,
        client_id,
    }))
}
