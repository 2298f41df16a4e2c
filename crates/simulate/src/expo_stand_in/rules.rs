//! The checks that Expo makes on requests.

use std::collections::{BTreeSet, HashMap};
use std::io::Read as _;

use axum::http::{HeaderMap, StatusCode, header};
use flate2::read::GzDecoder;
use homeport_systems::push::{
    ExpoPushToken, MESSAGES_PER_REQUEST_MAX, RATE_PER_SECOND_LIMIT, RECEIPTS_PER_REQUEST_MAX,
};
use serde_json::{Value, json};

use super::{BODY_BYTES_MAX, answers};

/// Expo's limit of messages per second and project.
pub(super) const RATE_PER_SECOND_MAX: usize = RATE_PER_SECOND_LIMIT;
/// The limit of Apple and Google for a message.
const MESSAGE_BYTES_MAX: usize = 4096;
/// Whether a value has the type of its member.
type IsValid = fn(&Value) -> bool;

/// The members of a message, and the type of each.
const MEMBERS: [(&str, IsValid); 17] = [
    ("to", Value::is_string),
    ("title", Value::is_string),
    ("body", Value::is_string),
    ("subtitle", Value::is_string),
    ("data", Value::is_object),
    ("sound", Value::is_string),
    ("badge", Value::is_u64),
    ("ttl", Value::is_u64),
    ("expiration", Value::is_u64),
    ("priority", |value| {
        is_one_of(value, &["default", "normal", "high"])
    }),
    ("interruptionLevel", |value| {
        is_one_of(value, &["active", "critical", "passive", "time-sensitive"])
    }),
    ("channelId", Value::is_string),
    ("categoryId", Value::is_string),
    ("icon", Value::is_string),
    ("richContent", |value| value["image"].is_string()),
    ("mutableContent", Value::is_boolean),
    ("_contentAvailable", Value::is_boolean),
];

/// A rejected request.
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

/// Reads a request's JSON, after checking its credential, encoding and size.
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
            message: "invalid access token".to_owned(),
        });
    }
    if !is(header::CONTENT_TYPE, "application/json") || !is(header::CONTENT_ENCODING, "gzip") {
        return Err(invalid("the body must be gzipped JSON"));
    }
    let limit = u64::try_from(BODY_BYTES_MAX).unwrap_or(u64::MAX);
    let mut text = String::new();
    let mut unpacked = GzDecoder::new(body).take(limit + 1);
    if unpacked.read_to_string(&mut text).is_err() {
        return Err(invalid("invalid gzip in the body"));
    }
    if text.len() > BODY_BYTES_MAX {
        return Err(Refusal {
            status: StatusCode::PAYLOAD_TOO_LARGE,
            code: "PAYLOAD_TOO_LARGE",
            message: "the body is too large".to_owned(),
        });
    }
    serde_json::from_str(&text).map_err(|_| invalid("invalid JSON in the body"))
}

/// Checks whether messages may be sent in one request.
pub(super) fn check_messages(
    messages: &[Value],
    projects: &HashMap<String, String>,
) -> Result<(), Refusal> {
    if messages.is_empty() {
        return Err(invalid("the array of messages is empty"));
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
            .ok_or_else(|| invalid("a message must be an object"))?;
        let is_valid = |(name, value): (&String, &Value)| {
            let mut known = MEMBERS.iter();
            known.any(|(known, is_right)| known == name && is_right(value))
        };
        if !members.iter().all(is_valid) {
            return Err(invalid("a message has an unknown or invalid member"));
        }
        let token = message["to"].as_str();
        let token = token.filter(|token| token.parse::<ExpoPushToken>().is_ok());
        let token = token.ok_or_else(|| invalid("invalid Expo push token"))?;
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

fn is_one_of(value: &Value, texts: &[&str]) -> bool {
    value.as_str().is_some_and(|text| texts.contains(&text))
}

/// The ticket of a message that is too big for Apple and Google.
pub(super) fn too_big(message: &Value) -> Option<Value> {
    let mut content = message.clone();
    if let Some(members) = content.as_object_mut() {
        members.remove("to");
    }
    (content.to_string().len() > MESSAGE_BYTES_MAX)
        .then(|| answers::error("MessageTooBig", "a message"))
}

/// The ticket ids in a receipts request.
pub(super) fn receipt_ids(asked: &Value) -> Result<Vec<&str>, Refusal> {
    let ids = asked["ids"].as_array();
    let ids = ids.ok_or_else(|| invalid("missing ids"))?;
    if ids.is_empty() {
        return Err(invalid("the list of ids is empty"));
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
        .map(|id| id.as_str().ok_or_else(|| invalid("an id must be a string")));
    texts.collect()
}

/// The body of a rejection.
pub(super) fn body(refusal: &Refusal) -> Value {
    json!({"errors": [{"code": refusal.code, "message": refusal.message}]})
}
