//! `POST /v1/rules/{name}/replay`

use axum::Json;
use axum::extract::State;
use homeport_item::{Item, Value};
use homeport_systems::plain_json;
use homeport_systems::rules::{
    Difference, REPLAY_PAGE_MAX, Replay, ReplayRange, ReplayTotals, Replayed, RuleDocument,
    RuleName, WouldWrite,
};
use homeport_systems::telemetry::{TelemetryError, ThingName};
use homeport_systems::time::UtcMillis;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::auth::Admin;
use crate::body::JsonBody;
use crate::forms;
use crate::forms::rules::{RuleDocumentForm, RulePath};
use crate::object;
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use crate::url::{self, PathPart, UrlQuery};

/// Which history a rule runs over.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::routes) struct ReplayQuery {
    /// The thing whose messages it runs over
    #[param(
        min_length = 1,
        max_length = 128,
        pattern = "^[!-.0-~]+$",
        example = "storyteller-van-01"
    )]
    thing: String,
    /// The oldest time wanted: milliseconds since 1970, or RFC 3339
    #[param(schema_with = forms::time, required = false)]
    from: Option<String>,
    /// The newest time wanted
    #[param(schema_with = forms::time, required = false)]
    to: Option<String>,
    /// Messages of history that are looked at
    #[param(minimum = 1, maximum = 100, default = 100)]
    limit: Option<usize>,
    /// Where the page before ended
    cursor: Option<String>,
}

/// What runs in the rule's place; the rule itself if this is empty.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = ReplayCandidate)]
pub(in crate::routes) struct Candidate {
    /// Another statement, with the actions that the rule has
    #[schema(example = "SELECT *, topic(2) AS thing_name FROM 'van/+/telemetry' WHERE volts < 12")]
    sql: Option<String>,
    /// Another rule, which has a statement of its own; there need not be one of this name then
    #[serde(default, deserialize_with = "object::optional")]
    #[schema(value_type = Option<RuleDocumentForm>)]
    topic_rule_payload: Option<RuleDocument>,
}

/// A page of a replay: what would have differed.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = RuleReplay)]
pub struct ReplayBody {
    /// Those that would have changed something, the oldest first
    pub messages: Vec<ReplayedBody>,
    pub totals: ReplayTotalsBody,
    /// Absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// What a page came to.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = RuleReplayTotals)]
pub struct ReplayTotalsBody {
    /// Messages on the rule's topics
    pub messages: usize,
    /// Writes of what is there already
    pub same: usize,
    pub different: usize,
    pub failures: usize,
}

/// What the rule would have made of one message.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ReplayedMessage)]
pub struct ReplayedBody {
    pub at: String,
    pub topic: String,
    pub writes: Vec<WouldWriteBody>,
    /// What it would have done besides, such as `republish on low/van-01`
    pub effects: Vec<String>,
    pub failures: Vec<String>,
}

/// A write beside what is there.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ReplayedWrite)]
pub struct WouldWriteBody {
    pub table: String,
    /// Absent when the table's keys are not known
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub key: Option<Box<RawValue>>,
    pub difference: DifferenceWord,
    /// What would be written, if there is nothing to compare it with
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub item: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeBody>,
}

/// How a write differs from what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ReplayedDifference)]
pub enum DifferenceWord {
    Same,
    New,
    Changed,
    Removed,
    /// The table is not Homeport's
    Unknown,
}

/// An attribute as it is and as it would be.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ReplayedChange)]
pub struct ChangeBody {
    pub attribute: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub is: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub would_be: Option<Box<RawValue>>,
}

impl ReplayBody {
    /// The next page of a replay.
    ///
    /// # Errors
    /// When the cursor is not one of this history, or the store fails.
    pub async fn next(replay: &mut Replay, limit: usize) -> Result<Self, TelemetryError> {
        let page = replay.page(limit).await?.unwrap_or_default();
        let mut totals = ReplayTotals::default();
        page.iter().for_each(|replayed| totals.add(replayed));
        let differing = page.iter().filter(|replayed| !replayed.changes_nothing());
        Ok(Self {
            messages: differing.map(ReplayedBody::from).collect(),
            totals: totals.into(),
            next_cursor: replay
                .cursor()
                .map(homeport_systems::cursor::Cursor::encode),
        })
    }
}

impl From<ReplayTotals> for ReplayTotalsBody {
    fn from(totals: ReplayTotals) -> Self {
        Self {
            messages: totals.messages,
            same: totals.same,
            different: totals.different,
            failures: totals.failures,
        }
    }
}

impl From<&Replayed> for ReplayedBody {
    fn from(replayed: &Replayed) -> Self {
        Self {
            at: UtcMillis::new(replayed.at).to_string(),
            topic: replayed.topic.clone(),
            writes: replayed.would_write.iter().map(Into::into).collect(),
            effects: replayed.other_effects.clone(),
            failures: replayed.failures.clone(),
        }
    }
}

impl From<&WouldWrite> for WouldWriteBody {
    fn from(write: &WouldWrite) -> Self {
        let (difference, item) = match &write.difference {
            Difference::Same => (DifferenceWord::Same, None),
            Difference::New(item) => (DifferenceWord::New, Some(item)),
            Difference::Changed(_) => (DifferenceWord::Changed, None),
            Difference::Removed => (DifferenceWord::Removed, None),
            Difference::Unknown(item) => (DifferenceWord::Unknown, Some(item)),
        };
        let changes = match &write.difference {
            Difference::Changed(changes) => changes.as_slice(),
            _ => &[],
        };
        let changes = changes.iter().map(|(attribute, is, would_be)| ChangeBody {
            attribute: attribute.clone(),
            is: is.as_ref().and_then(value),
            would_be: would_be.as_ref().and_then(value),
        });
        Self {
            table: write.table.clone(),
            key: write.key.as_ref().and_then(members),
            difference,
            item: item.and_then(members),
            changes: changes.collect(),
        }
    }
}

/// What is printed as JSON is JSON, so that there is always some.
fn members(item: &Item) -> Option<Box<RawValue>> {
    RawValue::from_string(plain_json::item(item)).ok()
}

fn value(value: &Value) -> Option<Box<RawValue>> {
    RawValue::from_string(plain_json::value(value)).ok()
}

/// Run a rule over stored telemetry and see what it would have written, beside what is there; nothing is
/// written and no action runs
#[utoipa::path(post, path = "/v1/rules/{name}/replay", tag = "rules", security(("admin_token" = [])),
    params(RulePath, ReplayQuery), request_body = Candidate, responses(
    (status = 200, description = "A page of what would have differed", body = ReplayBody),
    (status = 400, description = "The range, the limit, the cursor or the rule is not right", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such rule", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn replay_rule(
    _: Admin,
    State(state): State<AppState>,
    PathPart(name): PathPart<RuleName>,
    UrlQuery(query): UrlQuery<ReplayQuery>,
    JsonBody(candidate): JsonBody<Candidate>,
) -> Result<Json<ReplayBody>, Problem> {
    let document = match (candidate.topic_rule_payload, candidate.sql) {
        (Some(_), Some(_)) => {
            return Err(Problem::invalid(
                "give sql or topicRulePayload, which has its own, and not both",
            ));
        }
        (Some(document), None) => document,
        (None, sql) => {
            let document = &state.rules.rule(&name)?.rule.document;
            RuleDocument {
                sql: sql.unwrap_or_else(|| document.sql.clone()),
                ..(**document).clone()
            }
        }
    };
    let thing: ThingName = query.thing.parse()?;
    let time = |name, text: Option<String>| text.map(|text| url::time(name, &text)).transpose();
    let range = ReplayRange {
        thing,
        from: time("from", query.from)?,
        to: time("to", query.to)?,
    };
    let limit = url::limit(query.limit, REPLAY_PAGE_MAX)?;
    let cursor = url::cursor(query.cursor.as_deref())?;
    let replay = state
        .rules
        .replay(&name, &document, state.telemetry.clone(), range)?;
    let mut replay = replay.starting_at(cursor);
    Ok(Json(ReplayBody::next(&mut replay, limit).await?))
}
