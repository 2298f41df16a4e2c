//! `/v1/live`: what happens, as it happens, as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::{StreamExt as _, stream};
use homeport_store::ChangeKind;
use homeport_systems::fleet::LiveEntry;
use homeport_systems::live::{LiveEvent, LiveFilter, LivePosition, LiveReader};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::devices::SystemWord;
use super::history::{self, EntryBody};
use crate::auth::{Admin, bearer, cookie, text};
use crate::console::Console;
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use crate::url::UrlQuery;

/// How often a quiet feed says that it is there.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// When a browser comes back after a connection has ended, in milliseconds.
const RETRY_MS: u64 = 2000;
/// Longest name of a device that is asked for.
const DEVICE_LEN_MAX: usize = 600;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct LiveQuery {
    /// Of one system only
    #[param(inline)]
    system: Option<SystemWord>,
    /// Of one device only, by its id in the list of devices
    #[param(max_length = 600)]
    device: Option<String>,
    /// `telemetry`, `state`, `ota`, `scheduler`, `alert`, `notification` and `command`, with commas
    /// between them; all unless given
    #[param(
        pattern = "^(telemetry|state|ota|scheduler|alert|notification|command)(,(telemetry|state|ota|scheduler|alert|notification|command))*$"
    )]
    types: Option<String>,
    /// Where to go on, for those who cannot send the header `Last-Event-ID`
    last_event_id: Option<String>,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ChangeKind)]
enum KindWord {
    Insert,
    Modify,
    Remove,
}

/// The data of an event `change`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LiveChange)]
pub(in crate::routes) struct ChangeBody {
    #[serde(flatten)]
    entry: EntryBody,
    system: SystemWord,
    /// One of the devices that it is about
    device: String,
    kind: KindWord,
}

/// A client that listens. Dropped with its connection.
struct Listening {
    reader: LiveReader,
    device: Option<String>,
    console: Arc<Console>,
    /// The session that the client signed in with; `None` for the admin token itself, which lasts as long
    /// as the process.
    session: Option<String>,
}

impl ChangeBody {
    fn new(entry: LiveEntry, wanted: Option<&String>) -> Self {
        let device = match wanted {
            Some(wanted) => wanted.clone(),
            None => entry.devices.into_iter().next().unwrap_or_default(),
        };
        Self {
            system: entry.system.into(),
            device,
            kind: match entry.change {
                ChangeKind::Insert => KindWord::Insert,
                ChangeKind::Modify => KindWord::Modify,
                ChangeKind::Remove => KindWord::Remove,
            },
            entry: entry.entry.into(),
        }
    }
}

/// What happens to devices, as it happens
///
/// An event `change` has what happened; `id` is a place to go on from, and comes with the last event
/// of those that were read together: who goes on may see some again, which have the same id in their
/// data. An event `gap` says that changes were left out. A comment comes every 15 seconds. A stream that
/// was opened in a session of the console ends with that session.
#[utoipa::path(get, path = "/v1/live", tag = "console", security(("admin_token" = [])),
    params(LiveQuery, ("Last-Event-ID" = Option<String>, Header, description = "Where to go on; from now on unless given")), responses(
    (status = 200, description = "Events that do not end", body = ChangeBody, content_type = "text/event-stream"),
    (status = 400, description = "The filter or the place to go on from is not right", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "There are too many who listen, or the store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn follow_live(
    _: Admin,
    State(state): State<AppState>,
    headers: HeaderMap,
    UrlQuery(query): UrlQuery<LiveQuery>,
) -> Result<Response, Problem> {
    let last = text(&headers, "last-event-id").or(query.last_event_id.as_deref());
    let from: Option<LivePosition> = match last.filter(|last| !last.is_empty()) {
        Some(last) => Some(last.parse()?),
        None => None,
    };
    let device = query.device.filter(|device| !device.is_empty());
    if device
        .as_ref()
        .is_some_and(|device| device.len() > DEVICE_LEN_MAX)
    {
        return Err(Problem::invalid("device has at most 600 bytes"));
    }
    let filter = LiveFilter {
        system: query.system.map(Into::into),
        device: device.clone(),
        types: history::types(query.types.as_deref())?,
    };
    let reader = state.console.live.follow(filter, from).await?;
    let hello = format!("retry: {RETRY_MS}\nid: {}\n\n", reader.position());
    // IMPORTANT: who does not take what is sent is cut off by the port, which bounds the silence of
    // every connection; heartbeats keep all others alive.
    let session = match bearer(&headers) {
        Some(_) => None,
        None => cookie::sent(&headers).map(str::to_owned),
    };
    let listening = Listening {
        reader,
        device,
        console: Arc::clone(&state.console),
        session,
    };
    let events = stream::unfold(
        (listening, Some(hello)),
        |(mut listening, hello)| async move {
            let text = match hello {
                Some(hello) => hello,
                None => listening.next().await?,
            };
            Some((Ok::<_, Infallible>(Bytes::from(text)), (listening, None)))
        },
    );
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, Body::from_stream(events.fuse())).into_response())
}

impl Listening {
    /// The next lines to send; `None` at the end of the feed or of the client's session.
    async fn next(&mut self) -> Option<String> {
        let sessions = &self.console.sessions;
        let session = self.session.as_deref();
        let session_end = async {
            match session {
                Some(session) => sessions.until_over(session).await,
                None => std::future::pending().await,
            }
        };
        let event = tokio::select! {
            () = session_end => return None,
            event = tokio::time::timeout(HEARTBEAT, self.reader.next()) => event,
        };
        // It may have expired while both were waited for.
        if session.is_some_and(|session| sessions.expires_at(session).is_none()) {
            return None;
        }
        match event {
            Err(_) => Some(": still here\n\n".to_owned()),
            Ok(Ok(Some(LiveEvent::Entries(entries, position)))) => {
                let mut text = String::new();
                let last = entries.len().saturating_sub(1);
                for (at, entry) in entries.into_iter().enumerate() {
                    let body = ChangeBody::new(entry, self.device.as_ref());
                    let json = serde_json::to_string(&body).ok()?;
                    if at == last {
                        text.push_str(&format!("id: {position}\n"));
                    }
                    text.push_str("event: change\ndata: ");
                    text.push_str(&json);
                    text.push_str("\n\n");
                }
                Some(text)
            }
            Ok(Ok(Some(LiveEvent::Gap(position)))) => {
                Some(format!("id: {position}\nevent: gap\ndata: {{}}\n\n"))
            }
            Ok(Ok(None)) => None,
            Ok(Err(error)) => {
                // The client comes back, and goes on where it was.
                tracing::warn!(%error, "the live feed ends for a client");
                None
            }
        }
    }
}
