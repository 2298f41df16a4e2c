//! `/v1/alerts`: raised alerts with their comments and notifications.

use axum::Json;
use axum::extract::State;
use homeport_systems::alerts::{
    Acknowledgement, Alert, AlertFilter, AlertId, Comment, StateFilter,
};
use homeport_systems::fleet::DeviceRef;
use homeport_systems::time::EpochMillis;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Page;
use super::notifications::{NotificationBody, time};
use crate::auth::needs::Read;
use crate::auth::{Action, Authenticated, People};
use crate::openapi::enums::{
    AlertDeliveryFilter, AlertSeverity, AlertSource, AlertState, AlertStateBody, AlertStateFilter,
};
use crate::openapi::schemas::alerts::{self as schemas, AlertPath};
use crate::problem::Problem;
use crate::request::{Decimal, PathPart, UrlQuery};
use crate::state::AppState;

/// An alert.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Alert)]
pub(super) struct AlertBody {
    #[schema(schema_with = schemas::timed_id)]
    alert_id: String,
    #[schema(schema_with = schemas::timed_id)]
    definition_id: String,
    /// Name of the definition when the alert was raised
    definition_name: String,
    source: AlertSource,
    /// Thing name, hardware id, or group/device/journal
    device: String,
    /// Severity of the definition when the alert was raised
    severity: AlertSeverity,
    state: AlertStateBody,
    #[schema(example = "battery.volts is 11.8, below 12")]
    reason: String,
    /// The value that raised the alert, if there is one
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::decimal, required = false)]
    value: Option<Decimal>,
    /// Time of that value, or when the device was last seen
    observed_at: String,
    raised_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cleared_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clear_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::decimal, required = false)]
    clear_value: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acknowledged: Option<AcknowledgementBody>,
    /// Absent if nobody is assigned
    #[serde(skip_serializing_if = "Option::is_none")]
    assigned: Option<AssignmentBody>,
    /// Absent if notifications are not delayed now
    #[serde(skip_serializing_if = "Option::is_none")]
    snoozed: Option<SnoozeBody>,
    comment_count: usize,
    /// When a notification last failed for good
    #[serde(skip_serializing_if = "Option::is_none")]
    delivery_failed_at: Option<String>,
}

/// An alert with its notifications.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertWithTrace)]
pub(super) struct TracedAlert {
    #[serde(flatten)]
    alert: AlertBody,
    /// The oldest first
    comments: Vec<CommentBody>,
    notifications: Vec<NotificationBody>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertAcknowledgement)]
pub(super) struct AcknowledgementBody {
    at: String,
    by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertAssignment)]
struct AssignmentBody {
    at: String,
    by: String,
    to: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertSnooze)]
struct SnoozeBody {
    at: String,
    by: String,
    until: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertComment)]
pub(super) struct CommentBody {
    at: String,
    by: String,
    text: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AlertList {
    alerts: Vec<AlertBody>,
    /// Cursor of the next page; absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// State of the alerts; all states if absent
    #[param(inline)]
    state: Option<AlertStateFilter>,
    /// Device of the alerts
    device: Option<String>,
    /// Definition of the alerts
    #[param(schema_with = schemas::timed_id, required = false)]
    definition: Option<String>,
    /// Severity of the alerts; all severities if absent
    #[param(inline)]
    severity: Option<AlertSeverity>,
    /// Only alerts with a notification that failed for good
    #[param(inline)]
    delivery: Option<AlertDeliveryFilter>,
}

/// The device that an alert is about.
pub(in crate::routes) fn alert_device(alert: &Alert) -> DeviceRef {
    DeviceRef {
        system: alert.source.clone(),
        id: alert.device.as_str().to_owned(),
    }
}

impl From<Acknowledgement> for AcknowledgementBody {
    fn from(acknowledgement: Acknowledgement) -> Self {
        Self {
            at: time(acknowledgement.at),
            by: acknowledgement.by.into(),
            note: acknowledgement.note.map(String::from),
        }
    }
}

impl From<Comment> for CommentBody {
    fn from(comment: Comment) -> Self {
        Self {
            at: time(comment.at),
            by: comment.by.into(),
            text: comment.text.into(),
        }
    }
}

impl AlertBody {
    /// The alert as it is now.
    pub(super) fn new(alert: Alert, now: EpochMillis) -> Self {
        let state = if alert.is_open() {
            AlertState::Open
        } else {
            AlertState::Cleared
        };
        let snoozed = alert.snoozed(now).filter(|_| alert.is_open());
        let snoozed = snoozed.map(|snooze| SnoozeBody {
            at: time(snooze.at),
            by: snooze.by.to_string(),
            until: time(snooze.until),
        });
        let assigned = alert.assignment.and_then(|assignment| {
            Some(AssignmentBody {
                at: time(assignment.at),
                by: assignment.by.into(),
                to: assignment.to?.into(),
            })
        });
        let cleared = alert.cleared;
        Self {
            alert_id: alert.id.into(),
            definition_id: alert.definition_id.into(),
            definition_name: alert.definition_name.into(),
            source: alert.source.into(),
            device: alert.device.into(),
            severity: alert.severity.into(),
            state: state.into(),
            reason: alert.reason,
            value: alert.value.map(Decimal),
            observed_at: time(alert.observed_at),
            raised_at: time(alert.raised_at),
            cleared_at: cleared.as_ref().map(|cleared| time(cleared.at)),
            clear_reason: cleared.as_ref().map(|cleared| cleared.reason.clone()),
            clear_value: cleared.and_then(|cleared| cleared.value).map(Decimal),
            acknowledged: alert.acknowledged.map(AcknowledgementBody::from),
            assigned,
            snoozed,
            comment_count: alert.comments.len(),
            delivery_failed_at: alert.delivery_failed_at.map(time),
        }
    }
}

/// List alerts, the newest first
#[utoipa::path(get, path = "/v1/alerts", tag = "alerts",
    security(("admin_token" = [])), params(ListQuery, Page), responses(
    (status = 200, description = "A page of alerts", body = AlertList),
))]
pub(super) async fn list_alerts(
    caller: Authenticated<People<Read>>,
    State(state): State<AppState>,
    UrlQuery(query): UrlQuery<ListQuery>,
    page: Page,
) -> Result<Json<AlertList>, Problem> {
    let filter = AlertFilter {
        state: query.state.map_or(StateFilter::All, |state| state.0),
        device: query.device,
        definition: query.definition.map(|id| id.parse()).transpose()?,
        severity: query.severity.map(|severity| severity.0),
        is_undelivered: query.delivery.is_some(),
        is_unacknowledged: false,
    };
    let page = state
        .alerts
        .alerts(&filter, page.limit, page.cursor)
        .await?;
    // Pages of people with limited roles may have fewer alerts.
    let alerts = page.items.into_iter().filter(|alert| {
        let device = alert_device(alert);
        caller.check_device(Action::Read, &device).is_ok()
    });
    let now = EpochMillis(state.clock.now_ms());
    let alerts = alerts.map(|alert| AlertBody::new(alert, now));
    Ok(Json(AlertList {
        alerts: alerts.collect(),
        next_cursor: page.next.map(|cursor| cursor.encode()),
    }))
}

/// Get an alert with its notifications
#[utoipa::path(get, path = "/v1/alerts/{alert_id}", tag = "alerts",
    security(("admin_token" = [])), params(AlertPath), responses(
    (status = 200, description = "The alert", body = TracedAlert),
    (status = 404, description = "Alert not found"),
))]
pub(super) async fn get_alert(
    caller: Authenticated<People<Read>>,
    State(state): State<AppState>,
    PathPart(id): PathPart<AlertId>,
) -> Result<Json<TracedAlert>, Problem> {
    let alert = state.alerts.alert(&id).await?;
    caller.check_device(Action::Read, &alert_device(&alert))?;
    let comments = alert.comments.clone();
    let results = state.alerts.notification_results(&id).await?;
    Ok(Json(TracedAlert {
        alert: AlertBody::new(alert, EpochMillis(state.clock.now_ms())),
        comments: comments.into_iter().map(CommentBody::from).collect(),
        notifications: results.into_iter().map(NotificationBody::from).collect(),
    }))
}
