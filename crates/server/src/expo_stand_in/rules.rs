//! What Expo takes and what it refuses.

use std::collections::{BTreeSet, HashMap};
use std::io::Read as _;

use axum::http::{HeaderMap, StatusCode, header};
use flate2::read::GzDecoder;
use homeport_systems::push::{
    ExpoPushToken, MESSAGES_PER_REQUEST_MAX, RATE_PER_SECOND_LIMIT, RECEIPTS_PER_REQUEST_MAX,
};
use serde_json::{Value, json};

use super::{BODY_BYTES_MAX, said};

/// Messages that Expo takes within a second.
pub(super) const RATE_PER_SECOND_MAX: usize = RATE_PER_SECOND_LIMIT;
/// What Apple and Google take of a message.
const MESSAGE_BYTES_MAX: usize = 4096;
/// What a message may have; Expo has more, which nobody here sends.
const MEMBERS: [&str; 10] = [
    "to",
    "title",
    "body",
    "subtitle",
    "data",
    "sound",
    "badge",
    "ttl",
    "priority",
    "channelId",
];

/// A request that is refused as a whole.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    pub(super) message: String,
}

pub(super) fn invalid(message: &str) -> Refusal {
    Refusal {
        status: StatusCode::BAD_REQUEST,
        code: "VALIDATION_ERROR",
        message: message.to_owned(),
    }
}

/// The JSON of a request: packed, within its limits, from someone who may send it.
pub(super) fn read(
    headers: &HeaderMap,
    body: &[u8],
    access_token: Option<&str>,
) -> Result<Value, Refusal> {
    let is = |name, value: &str| headers.get(name).is_some_and(|sent| sent == value);
    if let Some(token) = access_token
        && !is(header::AUTHORIZATION, &format!("Bearer {token}"))
    {
        return Err(Refusal {
            status: StatusCode::UNAUTHORIZED,
            code: "UNAUTHORIZED",
            message: "the access token is not right".to_owned(),
        });
    }
    if !is(header::CONTENT_TYPE, "application/json") || !is(header::CONTENT_ENCODING, "gzip") {
        return Err(invalid("the body is no JSON in gzip"));
    }
    let limit = u64::try_from(BODY_BYTES_MAX).unwrap_or(u64::MAX);
    let mut text = String::new();
    let mut unpacked = GzDecoder::new(body).take(limit + 1);
    if unpacked.read_to_string(&mut text).is_err() {
        return Err(invalid("the body cannot be unpacked"));
    }
    if text.len() > BODY_BYTES_MAX {
        return Err(Refusal {
            status: StatusCode::PAYLOAD_TOO_LARGE,
            code: "PAYLOAD_TOO_LARGE",
            message: "the body is too large".to_owned(),
        });
    }
    serde_json::from_str(&text).map_err(|_| invalid("the body is no JSON"))
}

/// Whether messages can go out in one request.
pub(super) fn check_messages(
    messages: &[Value],
    projects: &HashMap<String, String>,
) -> Result<(), Refusal> {
    if messages.is_empty() {
        return Err(invalid("there is no message"));
    }
    if messages.len() > MESSAGES_PER_REQUEST_MAX {
        return Err(Refusal {
            status: StatusCode::BAD_REQUEST,
            code: "PUSH_TOO_MANY_NOTIFICATIONS",
            message: format!("{} messages in one request", messages.len()),
        });
    }
    let mut of_projects = BTreeSet::new();
    for message in messages {
        let members = message
            .as_object()
            .ok_or_else(|| invalid("a message is no object"))?;
        if members.keys().any(|name| !MEMBERS.contains(&name.as_str())) {
            return Err(invalid("a message has a member that is not known"));
        }
        let token = message["to"].as_str();
        let token = token.filter(|token| token.parse::<ExpoPushToken>().is_ok());
        let token = token.ok_or_else(|| invalid("a message goes to no Expo push token"))?;
        of_projects.insert(projects.get(token));
    }
    if of_projects.len() > 1 {
        return Err(Refusal {
            status: StatusCode::BAD_REQUEST,
            code: "PUSH_TOO_MANY_EXPERIENCE_IDS",
            message: "all messages of a request must be for the same project".to_owned(),
        });
    }
    Ok(())
}

/// The ticket of a message that Apple and Google would not take.
pub(super) fn too_big(message: &Value) -> Option<Value> {
    let mut said = message.clone();
    if let Some(members) = said.as_object_mut() {
        members.remove("to");
    }
    (said.to_string().len() > MESSAGE_BYTES_MAX).then(|| said::error("MessageTooBig", "a message"))
}

/// The tickets that a request for receipts names.
pub(super) fn receipt_ids(asked: &Value) -> Result<Vec<&str>, Refusal> {
    let ids = asked["ids"].as_array();
    let ids = ids.ok_or_else(|| invalid("there are no ids"))?;
    if ids.is_empty() {
        return Err(invalid("there is no id"));
    }
    if ids.len() > RECEIPTS_PER_REQUEST_MAX {
        return Err(Refusal {
            status: StatusCode::BAD_REQUEST,
            code: "PUSH_TOO_MANY_RECEIPTS",
            message: format!("{} receipts in one request", ids.len()),
        });
    }
    let texts = ids
        .iter()
        .map(|id| id.as_str().ok_or_else(|| invalid("an id is no text")));
    texts.collect()
}

/// The body of a refusal.
pub(super) fn body(refusal: &Refusal) -> Value {
    json!({"errors": [{"code": refusal.code, "message": refusal.message}]})
}
