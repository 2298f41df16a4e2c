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

use crate::auth::needs::ManageRules;
use crate::auth::{Authenticated, Everywhere};
use crate::openapi::schemas;
use crate::openapi::schemas::rules::{RuleDocumentSchema, RulePath};
use crate::openapi::schemas::telemetry::ThingQuery;
use crate::problem::Problem;
use crate::request::{JsonBody, PageQuery, PathPart, RequestTimes, UrlQuery, json_object};
use crate::state::AppState;

type Page = PageQuery<REPLAY_PAGE_MAX>;

/// The history to replay.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::routes) struct ReplayQuery {
    #[param(ignore)]
    thing: String,
    /// Oldest time, included
    #[param(schema_with = schemas::time, required = false)]
    from: Option<String>,
    /// Newest time, included
    #[param(schema_with = schemas::time, required = false)]
    to: Option<String>,
}

/// The rule to replay; the stored rule if empty.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = ReplayCandidate)]
pub(in crate::routes) struct Candidate {
    /// Another statement, with the actions of the stored rule
    #[schema(example = "SELECT *, topic(2) AS thing_name FROM 'van/+/telemetry' WHERE volts < 12")]
    sql: Option<String>,
    /// Another rule; a stored rule of this name is not required
    #[serde(default, deserialize_with = "json_object::optional")]
    #[schema(value_type = Option<RuleDocumentSchema>)]
    topic_rule_payload: Option<RuleDocument>,
}

/// A page of a replay: messages whose result would have differed.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = RuleReplay)]
pub struct ReplayBody {
    /// Messages that would have changed something, the oldest first
    pub messages: Vec<ReplayedBody>,
    pub totals: ReplayTotalsBody,
    /// Cursor of the next page; absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Totals of a page.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = RuleReplayTotals)]
pub struct ReplayTotalsBody {
    /// Messages on the rule's topics
    pub messages: usize,
    /// Writes that equal the stored item
    pub same: usize,
    pub different: usize,
    pub failures: usize,
}

/// What the rule would have done with a message.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ReplayedMessage)]
pub struct ReplayedBody {
    pub at: String,
    pub topic: String,
    pub writes: Vec<WouldWriteBody>,
    /// Other actions, such as `republish on low/van-01`
    pub effects: Vec<String>,
    pub failures: Vec<String>,
}

/// A write, compared with the stored item.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ReplayedWrite)]
pub struct WouldWriteBody {
    pub table: String,
    /// Absent if the table's keys are unknown
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub key: Option<Box<RawValue>>,
    pub difference: DifferenceKind,
    /// The item, if there is no stored one to compare with
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub item: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeBody>,
}

/// How a write differs from the stored item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ReplayedDifference)]
pub enum DifferenceKind {
    Same,
    New,
    Changed,
    Removed,
    /// The table is unknown to Homeport
    Unknown,
}

/// The stored and the new value of an attribute.
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
    /// If the cursor belongs to another history, or the store fails.
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
            Difference::Same => (DifferenceKind::Same, None),
            Difference::New(item) => (DifferenceKind::New, Some(item)),
            Difference::Changed(_) => (DifferenceKind::Changed, None),
            Difference::Removed => (DifferenceKind::Removed, None),
            Difference::Unknown(item) => (DifferenceKind::Unknown, Some(item)),
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

/// The item as JSON. What `plain_json` prints is always valid.
fn members(item: &Item) -> Option<Box<RawValue>> {
    RawValue::from_string(plain_json::item(item)).ok()
}

fn value(value: &Value) -> Option<Box<RawValue>> {
    RawValue::from_string(plain_json::value(value)).ok()
}

/// Replay a rule over stored telemetry and compare its writes with the stored items; nothing is written and no
/// action runs
#[utoipa::path(post, path = "/v1/rules/{name}/replay", tag = "rules", security(("admin_token" = [])),
    params(RulePath, ThingQuery, ReplayQuery, Page), request_body = Candidate, responses(
    (status = 200, description = "Messages with differences", body = ReplayBody),
    (status = 404, description = "Rule not found"),
))]
pub(in crate::routes) async fn replay_rule(
    _: Authenticated<Everywhere<ManageRules>>,
    State(state): State<AppState>,
    PathPart(name): PathPart<RuleName>,
    UrlQuery(query): UrlQuery<ReplayQuery>,
    page: Page,
    JsonBody(candidate): JsonBody<Candidate>,
) -> Result<Json<ReplayBody>, Problem> {
    let document = match (candidate.topic_rule_payload, candidate.sql) {
        (Some(_), Some(_)) => {
            return Err(Problem::invalid(
                "send either sql or topicRulePayload, not both",
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
    let times = RequestTimes::new(&state, page.cursor.as_ref());
    let (from, to) = times.bounds(query.from.as_deref(), query.to.as_deref())?;
    let range = ReplayRange { thing, from, to };
    let replay = state
        .rules
        .replay(&name, &document, state.telemetry.clone(), range)?;
    let mut replay = replay.starting_at(page.cursor);
    let mut body = ReplayBody::next(&mut replay, page.limit).await?;
    body.next_cursor = times.next_cursor(replay.cursor().cloned());
    Ok(Json(body))
}
