//! `/v1/alerts`: what was raised, what became of it, and that someone has seen it.

use axum::Json;
use axum::extract::State;
use homeport_systems::alerts::{Alert, AlertFilter, AlertId, Notification, PAGE_MAX, StateFilter};
use homeport_systems::time::{EpochMillis, UtcMillis};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::terms::SourceWord;
use crate::auth::Admin;
use crate::body::JsonBody;
use crate::decimal::Decimal;
use crate::forms::alerts::{self as forms, AlertPath};
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use crate::url::{self, PathPart, UrlQuery};

/// An alert.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Alert)]
pub(super) struct AlertBody {
    #[schema(schema_with = forms::timed_id)]
    alert_id: String,
    #[schema(schema_with = forms::timed_id)]
    definition_id: String,
    /// As it was called when the alert was raised
    definition_name: String,
    source: SourceWord,
    /// A thing, a hardware id, or group/device/journal
    device: String,
    state: StateWord,
    #[schema(example = "battery.volts is 11.8, below 12")]
    reason: String,
    /// The value that raised it, where there is one
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = forms::decimal, required = false)]
    value: Option<Decimal>,
    /// The time of that value, or of the last sign of life
    observed_at: String,
    raised_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cleared_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clear_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = forms::decimal, required = false)]
    clear_value: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acknowledged: Option<AcknowledgementBody>,
}

/// An alert with what was sent about it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertWithTrace)]
pub(super) struct TracedAlert {
    #[serde(flatten)]
    alert: AlertBody,
    notifications: Vec<NotificationBody>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertAcknowledgement)]
struct AcknowledgementBody {
    at: String,
    by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// What was sent to one target, or is to be.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertNotification)]
struct NotificationBody {
    /// raised or cleared
    event: &'static str,
    /// push, webhook, mqtt or email
    target: &'static str,
    /// queued, sending, sent, failed or dropped
    state: &'static str,
    attempts: u32,
    /// How many of these were never answered: each may have arrived
    unanswered: u32,
    trace: Vec<StepBody>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertNotificationStep)]
struct StepBody {
    at: String,
    step: String,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = AlertState)]
enum StateWord {
    Open,
    Cleared,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AlertList {
    alerts: Vec<AlertBody>,
    /// Absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Who has seen it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AcknowledgeAlert {
    #[schema(schema_with = forms::name)]
    by: String,
    #[serde(default)]
    #[schema(schema_with = forms::note, required = false)]
    note: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// Which alerts; all unless given
    #[param(inline)]
    state: Option<StateParameter>,
    /// Those of one device
    device: Option<String>,
    /// Those of one definition
    #[param(schema_with = forms::timed_id, required = false)]
    definition: Option<String>,
    /// Items of a page
    #[param(minimum = 1, maximum = 100, default = 100)]
    limit: Option<usize>,
    /// Where the page before ended
    cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = AlertStateFilter)]
pub(super) enum StateParameter {
    Open,
    Cleared,
    All,
}

fn time(at: EpochMillis) -> String {
    UtcMillis::new(at).to_string()
}

impl From<Alert> for AlertBody {
    fn from(alert: Alert) -> Self {
        let state = if alert.is_open() {
            StateWord::Open
        } else {
            StateWord::Cleared
        };
        let cleared = alert.cleared;
        Self {
            alert_id: alert.id.into(),
            definition_id: alert.definition_id.into(),
            definition_name: alert.definition_name.into(),
            source: alert.source.into(),
            device: alert.device.into(),
            state,
            reason: alert.reason,
            value: alert.value.map(Decimal),
            observed_at: time(alert.observed_at),
            raised_at: time(alert.raised_at),
            cleared_at: cleared.as_ref().map(|cleared| time(cleared.at)),
            clear_reason: cleared.as_ref().map(|cleared| cleared.reason.clone()),
            clear_value: cleared.and_then(|cleared| cleared.value).map(Decimal),
            acknowledged: alert.acknowledged.map(|seen| AcknowledgementBody {
                at: time(seen.at),
                by: seen.by.into(),
                note: seen.note.map(String::from),
            }),
        }
    }
}

impl From<Notification> for NotificationBody {
    fn from(notification: Notification) -> Self {
        let trace = notification.steps.into_iter().map(|step| StepBody {
            at: time(step.at),
            step: step.what,
        });
        Self {
            event: notification.event.as_str(),
            target: notification.target.kind(),
            state: notification.state.as_str(),
            attempts: notification.attempts,
            unanswered: notification.unanswered,
            trace: trace.collect(),
        }
    }
}

/// Alerts, the newest first
#[utoipa::path(get, path = "/v1/alerts", tag = "alerts",
    security(("admin_token" = [])), params(ListQuery), responses(
    (status = 200, description = "A page of alerts", body = AlertList),
    (status = 400, description = "The definition, the limit or the cursor is not right", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Not an operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn list_alerts(
    _: Admin,
    State(state): State<AppState>,
    UrlQuery(query): UrlQuery<ListQuery>,
) -> Result<Json<AlertList>, Problem> {
    let filter = AlertFilter {
        state: match query.state {
            Some(StateParameter::Open) => StateFilter::Open,
            Some(StateParameter::Cleared) => StateFilter::Cleared,
            Some(StateParameter::All) | None => StateFilter::All,
        },
        device: query.device,
        definition: query.definition.map(|id| id.parse()).transpose()?,
    };
    let limit = url::limit(query.limit, PAGE_MAX)?;
    let cursor = url::cursor(query.cursor.as_deref())?;
    let page = state.alerts.alerts(&filter, limit, cursor).await?;
    Ok(Json(AlertList {
        alerts: page.alerts.into_iter().map(AlertBody::from).collect(),
        next_cursor: page.next.map(|cursor| cursor.encode()),
    }))
}

/// One alert, with what was sent about it
#[utoipa::path(get, path = "/v1/alerts/{alert_id}", tag = "alerts",
    security(("admin_token" = [])), params(AlertPath), responses(
    (status = 200, description = "The alert", body = TracedAlert),
    (status = 400, description = "The id is none", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Not an operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such alert", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn get_alert(
    _: Admin,
    State(state): State<AppState>,
    PathPart(id): PathPart<AlertId>,
) -> Result<Json<TracedAlert>, Problem> {
    let alert = state.alerts.alert(&id).await?;
    let notifications = state.alerts.notifications(&id).await?.into_iter();
    Ok(Json(TracedAlert {
        alert: alert.into(),
        notifications: notifications.map(NotificationBody::from).collect(),
    }))
}

/// Note that someone has seen an alert; the first one counts
#[utoipa::path(post, path = "/v1/alerts/{alert_id}/acknowledge", tag = "alerts",
    security(("admin_token" = [])), params(AlertPath), request_body = AcknowledgeAlert, responses(
    (status = 200, description = "It is noted", body = AlertBody),
    (status = 400, description = "Something is not as it should be", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Not an operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such alert", body = ProblemBody, content_type = "application/problem+json"),
    (status = 409, description = "Someone else has acknowledged it", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn acknowledge_alert(
    _: Admin,
    State(state): State<AppState>,
    PathPart(id): PathPart<AlertId>,
    JsonBody(body): JsonBody<AcknowledgeAlert>,
) -> Result<Json<AlertBody>, Problem> {
    let note = body.note.map(|note| note.parse()).transpose()?;
    let alert = state
        .alerts
        .acknowledge(&id, body.by.parse()?, note)
        .await?;
    Ok(Json(alert.into()))
}
