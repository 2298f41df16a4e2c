//! `/v1/live`: changes of devices as server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::{StreamExt as _, stream};
use homeport_systems::fleet::{LiveEntry, subject};
use homeport_systems::live::{LiveEvent, LiveFilter, LivePosition, LiveReader};
use homeport_systems::people::{self, CredentialKind, TOKEN_PREFIX};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::timeline::{EntryBody, parse_types};
use crate::auth::needs::Read;
use crate::auth::{
    Action, Authenticated, Caller, People, Subject, bearer_token, header_text, session_cookie,
};
use crate::openapi::enums::{DeviceSystem, ItemChangeKind};
use crate::problem::Problem;
use crate::request::UrlQuery;
use crate::state::AppState;

/// Interval of heartbeats on a stream without events.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Wait of a browser before it reconnects, in milliseconds.
const RETRY_MS: u64 = 2000;
/// Longest device id in the filter.
const DEVICE_LEN_MAX: usize = 600;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct LiveQuery {
    /// System of the devices
    #[param(inline)]
    system: Option<DeviceSystem>,
    /// Id from the list of devices
    #[param(max_length = 600)]
    device: Option<String>,
    /// Comma-separated entry types: `telemetry`, `state`, `ota`, `scheduler`, `alert`, `notification`, `command`; all
    /// if absent
    #[param(
        pattern = "^(telemetry|state|ota|scheduler|alert|notification|command)(,(telemetry|state|ota|scheduler|alert|notification|command))*$"
    )]
    types: Option<String>,
    /// Position to continue from, for clients that cannot send the header `Last-Event-ID`
    last_event_id: Option<String>,
}

/// Data of an event `change`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LiveChange)]
pub(in crate::routes) struct ChangeBody {
    #[serde(flatten)]
    entry: EntryBody,
    system: DeviceSystem,
    /// A device that the change concerns
    device: String,
    kind: ItemChangeKind,
}

/// The stream of one client; dropped with its connection.
struct LiveStream {
    reader: LiveReader,
    device: Option<String>,
    people: people::People,
    /// The client's session or token; `None` for the admin token, which never expires.
    credential: Option<(String, CredentialKind)>,
    caller: Caller,
}

impl ChangeBody {
    /// A change, if the caller may see one of its devices.
    fn new(entry: LiveEntry, filter: Option<&String>, caller: &Caller) -> Option<Self> {
        let system = entry.system.as_str();
        let is_visible = |device: &String| {
            let subject = subject(device);
            let checked = caller.check(Action::Read, system, Subject::One(&subject));
            checked.is_ok()
        };
        let mut devices = entry.devices.iter().chain(filter);
        let device = devices
            .find(|device| filter.is_none_or(|filter| filter == *device) && is_visible(device))?
            .clone();
        Some(Self::of(entry, device))
    }

    fn of(entry: LiveEntry, device: String) -> Self {
        Self {
            system: entry.system.into(),
            device,
            kind: entry.change.into(),
            entry: entry.entry.into(),
        }
    }
}

/// Follow changes of devices
///
/// An event `change` describes a change. The last event of a batch has an `id` to continue from; a client that
/// continues may receive some changes again, with the same id in their data. An event `gap` reports that changes were
/// skipped. A comment is sent after 15 seconds without events. A stream that was opened in a console session ends
/// with the session.
#[utoipa::path(get, path = "/v1/live", tag = "console", security(("admin_token" = [])),
    params(LiveQuery, ("Last-Event-ID" = Option<String>, Header, description = "Position to continue from; new changes only if absent")), responses(
    (status = 200, description = "An endless stream of events", body = ChangeBody, content_type = "text/event-stream"),
    (status = 503, description = "Too many clients follow the feed, or the store is unavailable; retry later")
))]
pub(super) async fn follow_live(
    caller: Authenticated<People<Read>>,
    State(state): State<AppState>,
    headers: HeaderMap,
    UrlQuery(query): UrlQuery<LiveQuery>,
) -> Result<Response, Problem> {
    let last = header_text(&headers, "last-event-id").or(query.last_event_id.as_deref());
    let from: Option<LivePosition> = match last.filter(|last| !last.is_empty()) {
        Some(last) => Some(last.parse()?),
        None => None,
    };
    let device = query.device.filter(|device| !device.is_empty());
    if device
        .as_ref()
        .is_some_and(|device| device.len() > DEVICE_LEN_MAX)
    {
        return Err(Problem::invalid("device must have at most 600 bytes"));
    }
    let filter = LiveFilter {
        system: query.system.map(|system| system.0),
        device: device.clone(),
        types: parse_types(query.types.as_deref())?,
    };
    let reader = state.console.live.follow(filter, from).await?;
    let first_lines = format!("retry: {RETRY_MS}\nid: {}\n\n", reader.position());
    // IMPORTANT: the port closes connections that are idle too long. Heartbeats keep a stream open, and a client
    // that stops reading is disconnected.
    let credential = match bearer_token(&headers) {
        Some(token) => token
            .starts_with(TOKEN_PREFIX)
            .then_some((token, CredentialKind::Token)),
        None => {
            session_cookie::session_token(&headers).map(|token| (token, CredentialKind::Session))
        }
    };
    let live = LiveStream {
        reader,
        device,
        people: state.people.clone(),
        credential: credential.map(|(token, kind)| (token.to_owned(), kind)),
        caller: Caller::clone(&caller),
    };
    let events = stream::unfold(
        (live, Some(first_lines)),
        |(mut live, first_lines)| async move {
            let text = match first_lines {
                Some(lines) => lines,
                None => live.next().await?,
            };
            Some((Ok::<_, Infallible>(Bytes::from(text)), (live, None)))
        },
    );
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, Body::from_stream(events.fuse())).into_response())
}

impl LiveStream {
    /// The next lines to send; `None` when the feed or the client's session ends.
    async fn next(&mut self) -> Option<String> {
        loop {
            let end = async {
                match &self.credential {
                    Some((token, kind)) => self.people.until_over(token, *kind).await,
                    None => std::future::pending().await,
                }
            };
            let event = tokio::select! {
                () = end => return None,
                event = tokio::time::timeout(HEARTBEAT, self.reader.next()) => event,
            };
            // The session may have ended during the wait, or its person's roles have changed.
            if let Some((token, kind)) = &self.credential {
                let access = self.people.verify(token, *kind).await.ok().flatten()?;
                self.caller = Caller::Person(access);
                self.caller.check_role(Action::Read).ok()?;
            }
            match event {
                Err(_) => return Some(": heartbeat\n\n".to_owned()),
                Ok(Ok(Some(LiveEvent::Entries(entries, position)))) => {
                    let text = self.changes(entries, &position.to_string())?;
                    if !text.is_empty() {
                        return Some(text);
                    }
                }
                Ok(Ok(Some(LiveEvent::Gap(position)))) => {
                    return Some(format!("id: {position}\nevent: gap\ndata: {{}}\n\n"));
                }
                Ok(Ok(None)) => return None,
                Ok(Err(error)) => {
                    // The client reconnects and continues from its position.
                    tracing::warn!(%error, "a live feed ended");
                    return None;
                }
            }
        }
    }

    /// The lines of the changes that the caller may see. The last one has the position.
    fn changes(&self, entries: Vec<LiveEntry>, position: &str) -> Option<String> {
        let filter = self.device.as_ref();
        let bodies = entries
            .into_iter()
            .filter_map(|entry| ChangeBody::new(entry, filter, &self.caller));
        let bodies: Vec<ChangeBody> = bodies.collect();
        let last = bodies.len().saturating_sub(1);
        let mut text = String::new();
        for (at, body) in bodies.iter().enumerate() {
            let json = serde_json::to_string(body).ok()?;
            if at == last {
                text.push_str(&format!("id: {position}\n"));
            }
            text.push_str("event: change\ndata: ");
            text.push_str(&json);
            text.push_str("\n\n");
        }
        Some(text)
    }
}
