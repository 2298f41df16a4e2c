//! `/v1/alerts/{alert_id}/…`: what people do with alerts.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use homeport_systems::alerts::{
    ACKNOWLEDGED_AT_ONCE_MAX, Alert, AlertFilter, AlertId, AlertsError, PersonName,
    SNOOZE_SECS_MAX, Selection,
};
use homeport_systems::people::ADMIN_NAME;
use homeport_systems::time::EpochMillis;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::raised::{AcknowledgementBody, AlertBody, CommentBody, alert_device};
use crate::auth::needs::Acknowledge;
use crate::auth::{Action, Authenticated, Caller, People};
use crate::openapi::schemas::alerts::{self as schemas, AlertPath};
use crate::problem::Problem;
use crate::request::{JsonBody, PathPart, RequestTimes, WholeNumber, json_object};
use crate::state::AppState;

/// An acknowledgement.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AcknowledgeAlert {
    #[serde(default)]
    #[schema(schema_with = schemas::acting_person, required = false)]
    by: Option<String>,
    #[serde(default)]
    #[schema(schema_with = schemas::note, required = false)]
    note: Option<String>,
}

/// An acknowledgement of many alerts: either listed ones, or the open ones that match a filter.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AcknowledgeAlerts {
    #[serde(default)]
    #[schema(schema_with = schemas::acting_person, required = false)]
    by: Option<String>,
    #[serde(default)]
    #[schema(schema_with = schemas::note, required = false)]
    note: Option<String>,
    #[serde(default)]
    #[schema(schema_with = schemas::alert_ids, required = false)]
    alert_ids: Option<Vec<String>>,
    #[serde(default, deserialize_with = "json_object::optional")]
    filter: Option<SelectionBody>,
}

/// Open alerts that are not acknowledged; all of them if it is empty.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AlertSelection)]
struct SelectionBody {
    /// Device of the alerts
    device: Option<String>,
    /// Definition of the alerts
    #[schema(schema_with = schemas::timed_id_or_null, required = false)]
    definition: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AcknowledgedAlerts {
    /// One for each alert, in the order of the request
    results: Vec<AcknowledgeResult>,
    /// Whether more alerts match the filter; repeat the request for them
    has_more: bool,
}

#[derive(Debug, Serialize, ToSchema)]
struct AcknowledgeResult {
    #[schema(schema_with = schemas::timed_id)]
    alert_id: String,
    /// `acknowledged`, `already_acknowledged`, `not_found` or `unavailable`
    #[schema(example = "acknowledged")]
    result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    acknowledged: Option<AcknowledgementBody>,
}

/// A snooze: until a time, or for some seconds.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SnoozeAlert {
    #[serde(default)]
    #[schema(schema_with = schemas::acting_person, required = false)]
    by: Option<String>,
    /// A time within the next 31 days
    #[schema(format = DateTime, example = "2027-01-15T18:00:00Z")]
    until: Option<String>,
    /// Seconds from now, at most 2678400
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 2_678_400, example = 3600)]
    for_secs: Option<WholeNumber>,
}

/// The end of a snooze.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WakeAlert {
    #[serde(default)]
    #[schema(schema_with = schemas::acting_person, required = false)]
    by: Option<String>,
}

/// An assignment.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AssignAlert {
    #[serde(default)]
    #[schema(schema_with = schemas::acting_person, required = false)]
    by: Option<String>,
    /// Name of a person, or null to remove the assignment
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(schema_with = schemas::name_or_null, required = true)]
    to: Option<String>,
}

/// A comment.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CommentOnAlert {
    #[serde(default)]
    #[schema(schema_with = schemas::acting_person, required = false)]
    by: Option<String>,
    #[schema(schema_with = schemas::comment)]
    text: String,
}

fn shown(state: &AppState, alert: Alert) -> Json<AlertBody> {
    Json(AlertBody::new(alert, EpochMillis(state.clock.now_ms())))
}

/// The name under which a caller handles alerts.
fn acting_person(caller: &Caller, by: Option<String>) -> Result<PersonName, Problem> {
    let own = caller.principal();
    let by = by.unwrap_or_else(|| own.clone());
    if by != own && own != ADMIN_NAME {
        return Err(Problem::invalid(
            "by must be your own name, or absent: only the admin token can name someone else",
        ));
    }
    Ok(by.parse()?)
}

/// Checks that the caller may handle an alert.
async fn check_alert(caller: &Caller, state: &AppState, id: &AlertId) -> Result<(), Problem> {
    let alert = state.alerts.alert(id).await?;
    Ok(caller.check_device(Action::Acknowledge, &alert_device(&alert))?)
}

/// Acknowledge an alert; only the first acknowledgement is kept
#[utoipa::path(post, path = "/v1/alerts/{alert_id}/acknowledge", tag = "alerts",
    security(("admin_token" = [])), params(AlertPath), request_body = AcknowledgeAlert, responses(
    (status = 200, description = "The acknowledged alert", body = AlertBody),
    (status = 404, description = "Alert not found"),
    (status = 409, description = "Already acknowledged by someone else"),
))]
pub(super) async fn acknowledge_alert(
    caller: Authenticated<People<Acknowledge>>,
    State(state): State<AppState>,
    PathPart(id): PathPart<AlertId>,
    JsonBody(body): JsonBody<AcknowledgeAlert>,
) -> Result<Json<AlertBody>, Problem> {
    let note = body.note.map(|note| note.parse()).transpose()?;
    check_alert(&caller, &state, &id).await?;
    let by = acting_person(&caller, body.by)?;
    let alert = state.alerts.acknowledge(&id, by, note).await?;
    Ok(shown(&state, alert))
}

/// Acknowledge up to 100 alerts; each has its own result
#[utoipa::path(post, path = "/v1/alerts/acknowledge", tag = "alerts",
    security(("admin_token" = [])), request_body = AcknowledgeAlerts, responses(
    (status = 200, description = "The result of each alert", body = AcknowledgedAlerts),
))]
pub(super) async fn acknowledge_alerts(
    caller: Authenticated<People<Acknowledge>>,
    State(state): State<AppState>,
    JsonBody(body): JsonBody<AcknowledgeAlerts>,
) -> Result<Json<AcknowledgedAlerts>, Problem> {
    let selection = match (body.alert_ids, body.filter) {
        (Some(ids), None) if (1..=ACKNOWLEDGED_AT_ONCE_MAX).contains(&ids.len()) => {
            let ids: Vec<AlertId> = ids.iter().map(|id| id.parse()).collect::<Result<_, _>>()?;
            if caller.check_everywhere(Action::Acknowledge).is_err() {
                for id in &ids {
                    check_alert(&caller, &state, id).await?;
                }
            }
            Selection::Listed(ids)
        }
        (Some(_), None) => {
            return Err(Problem::invalid(format!(
                "alert_ids must be 1 to {ACKNOWLEDGED_AT_ONCE_MAX} ids"
            )));
        }
        (None, Some(filter)) => {
            // A filter may match alerts of every device.
            caller.check_everywhere(Action::Acknowledge)?;
            Selection::Matching(AlertFilter {
                device: filter.device,
                definition: filter.definition.map(|id| id.parse()).transpose()?,
                ..AlertFilter::default()
            })
        }
        _ => return Err(Problem::invalid("give either alert_ids or filter")),
    };
    let note = body.note.map(|note| note.parse()).transpose()?;
    let by = acting_person(&caller, body.by)?;
    let done = state.alerts.acknowledge_many(selection, by, note).await?;
    let results = done.results.into_iter().map(|(id, result)| {
        let (result, alert) = match result {
            Ok(alert) => ("acknowledged", Some(alert)),
            Err(AlertsError::AlreadyAcknowledged) => ("already_acknowledged", None),
            Err(AlertsError::AlertMissing) => ("not_found", None),
            Err(error) => {
                tracing::warn!(%error, alert = %id, "acknowledging an alert failed");
                ("unavailable", None)
            }
        };
        AcknowledgeResult {
            alert_id: id.into(),
            result,
            acknowledged: alert
                .and_then(|alert| alert.acknowledged)
                .map(AcknowledgementBody::from),
        }
    });
    Ok(Json(AcknowledgedAlerts {
        results: results.collect(),
        has_more: done.has_more,
    }))
}

/// Snooze an open alert
///
/// No notifications are sent until its end. If the alert is still open then, its targets are notified again. A
/// notification that the alert was cleared waits for the end too. Another snooze replaces the one before.
#[utoipa::path(post, path = "/v1/alerts/{alert_id}/snooze", tag = "alerts",
    security(("admin_token" = [])), params(AlertPath), request_body = SnoozeAlert, responses(
    (status = 200, description = "The snoozed alert", body = AlertBody),
    (status = 404, description = "Alert not found"),
    (status = 409, description = "The alert is cleared, or was snoozed 50 times"),
))]
pub(super) async fn snooze_alert(
    caller: Authenticated<People<Acknowledge>>,
    State(state): State<AppState>,
    PathPart(id): PathPart<AlertId>,
    JsonBody(body): JsonBody<SnoozeAlert>,
) -> Result<Json<AlertBody>, Problem> {
    let times = RequestTimes::new(&state, None);
    let until = match (body.until, body.for_secs) {
        (Some(until), None) => times.parse("until", &until)?,
        (None, Some(WholeNumber(secs))) if (1..=SNOOZE_SECS_MAX).contains(&secs) => {
            EpochMillis(times.now().0 + secs * 1000)
        }
        (None, Some(_)) => {
            let expected = format!("for_secs must be 1 to {SNOOZE_SECS_MAX}");
            return Err(Problem::invalid(expected));
        }
        _ => return Err(Problem::invalid("give either until or for_secs")),
    };
    check_alert(&caller, &state, &id).await?;
    let by = acting_person(&caller, body.by)?;
    let alert = state.alerts.snooze(&id, by, until).await?;
    Ok(shown(&state, alert))
}

/// End the snooze of an alert; notifications that waited for it are sent
#[utoipa::path(post, path = "/v1/alerts/{alert_id}/wake", tag = "alerts",
    security(("admin_token" = [])), params(AlertPath), request_body = WakeAlert, responses(
    (status = 200, description = "The alert", body = AlertBody),
    (status = 404, description = "Alert not found"),
))]
pub(super) async fn wake_alert(
    caller: Authenticated<People<Acknowledge>>,
    State(state): State<AppState>,
    PathPart(id): PathPart<AlertId>,
    JsonBody(body): JsonBody<WakeAlert>,
) -> Result<Json<AlertBody>, Problem> {
    check_alert(&caller, &state, &id).await?;
    let by = acting_person(&caller, body.by)?;
    let alert = state.alerts.end_snooze(&id, by).await?;
    Ok(shown(&state, alert))
}

/// Assign an alert to a person, or remove the assignment
#[utoipa::path(post, path = "/v1/alerts/{alert_id}/assign", tag = "alerts",
    security(("admin_token" = [])), params(AlertPath), request_body = AssignAlert, responses(
    (status = 200, description = "The alert", body = AlertBody),
    (status = 404, description = "Alert not found"),
))]
pub(super) async fn assign_alert(
    caller: Authenticated<People<Acknowledge>>,
    State(state): State<AppState>,
    PathPart(id): PathPart<AlertId>,
    JsonBody(body): JsonBody<AssignAlert>,
) -> Result<Json<AlertBody>, Problem> {
    // The error names the field.
    let to = body.to.map(|to| to.parse());
    let to = to.transpose().map_err(|_| {
        Problem::invalid("to must be 1 to 128 printable characters, not all of them blank")
    })?;
    check_alert(&caller, &state, &id).await?;
    let by = acting_person(&caller, body.by)?;
    let alert = state.alerts.assign(&id, by, to).await?;
    Ok(shown(&state, alert))
}

/// Comment on an alert
#[utoipa::path(post, path = "/v1/alerts/{alert_id}/comments", tag = "alerts",
    security(("admin_token" = [])), params(AlertPath), request_body = CommentOnAlert, responses(
    (status = 201, description = "The comment", body = CommentBody),
    (status = 404, description = "Alert not found"),
    (status = 409, description = "The alert has 50 comments"),
))]
pub(super) async fn comment_on_alert(
    caller: Authenticated<People<Acknowledge>>,
    State(state): State<AppState>,
    PathPart(id): PathPart<AlertId>,
    JsonBody(body): JsonBody<CommentOnAlert>,
) -> Result<(StatusCode, Json<CommentBody>), Problem> {
    check_alert(&caller, &state, &id).await?;
    let (by, text) = (acting_person(&caller, body.by)?, body.text.parse()?);
    let comment = state.alerts.comment(&id, by, text).await?;
    Ok((StatusCode::CREATED, Json(comment.into())))
}
