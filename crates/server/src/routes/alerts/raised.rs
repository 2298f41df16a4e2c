//! `/v1/alerts`: raised alerts, their notifications and acknowledgements.

use axum::Json;
use axum::extract::State;
use homeport_systems::alerts::{Alert, AlertFilter, AlertId, Notification, StateFilter};
use homeport_systems::fleet::DeviceRef;
use homeport_systems::people::ADMIN_NAME;
use homeport_systems::time::{EpochMillis, UtcMillis};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Page;
use crate::auth::needs::{Acknowledge, Read};
use crate::auth::{Action, Authenticated, People};
use crate::openapi::enums::{AlertSource, AlertState, AlertStateBody, AlertStateFilter};
use crate::openapi::schemas::alerts::{self as schemas, AlertPath};
use crate::problem::Problem;
use crate::request::{Decimal, JsonBody, PathPart, UrlQuery};
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
}

/// An alert with its notifications.
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

/// A notification to one target.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertNotification)]
struct NotificationBody {
    /// `raised` or `cleared`
    event: &'static str,
    /// `push`, `webhook`, `mqtt` or `email`
    target: &'static str,
    /// `queued`, `sending`, `sent`, `failed` or `dropped`
    state: &'static str,
    attempts: u32,
    /// Attempts without a response; each may have been delivered
    unanswered: u32,
    trace: Vec<StepBody>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertNotificationStep)]
struct StepBody {
    at: String,
    step: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AlertList {
    alerts: Vec<AlertBody>,
    /// Cursor of the next page; absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// An acknowledgement.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AcknowledgeAlert {
    /// Who acknowledges it; default the caller's own name
    #[serde(default)]
    #[schema(schema_with = schemas::acknowledger, required = false)]
    by: Option<String>,
    #[serde(default)]
    #[schema(schema_with = schemas::note, required = false)]
    note: Option<String>,
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
}

/// The device that an alert is about.
pub(in crate::routes) fn alert_device(alert: &Alert) -> DeviceRef {
    DeviceRef {
        system: alert.source.clone(),
        id: alert.device.as_str().to_owned(),
    }
}

fn time(at: EpochMillis) -> String {
    UtcMillis::new(at).to_string()
}

impl From<Alert> for AlertBody {
    fn from(alert: Alert) -> Self {
        let state = if alert.is_open() {
            AlertState::Open
        } else {
            AlertState::Cleared
        };
        let cleared = alert.cleared;
        Self {
            alert_id: alert.id.into(),
            definition_id: alert.definition_id.into(),
            definition_name: alert.definition_name.into(),
            source: alert.source.into(),
            device: alert.device.into(),
            state: state.into(),
            reason: alert.reason,
            value: alert.value.map(Decimal),
            observed_at: time(alert.observed_at),
            raised_at: time(alert.raised_at),
            cleared_at: cleared.as_ref().map(|cleared| time(cleared.at)),
            clear_reason: cleared.as_ref().map(|cleared| cleared.reason.clone()),
            clear_value: cleared.and_then(|cleared| cleared.value).map(Decimal),
            acknowledged: alert
                .acknowledged
                .map(|acknowledgement| AcknowledgementBody {
                    at: time(acknowledgement.at),
                    by: acknowledgement.by.into(),
                    note: acknowledgement.note.map(String::from),
                }),
        }
    }
}

impl From<Notification> for NotificationBody {
    fn from(notification: Notification) -> Self {
        let trace = notification
            .delivery
            .steps
            .into_iter()
            .map(|step| StepBody {
                at: time(step.at),
                step: step.what,
            });
        Self {
            event: notification.event.as_str(),
            target: notification.target.kind(),
            state: notification.delivery.state.as_str(),
            attempts: notification.delivery.attempts,
            unanswered: notification.delivery.unanswered,
            trace: trace.collect(),
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
    Ok(Json(AlertList {
        alerts: alerts.map(AlertBody::from).collect(),
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
    let notifications = state.alerts.notifications(&id).await?.into_iter();
    Ok(Json(TracedAlert {
        alert: alert.into(),
        notifications: notifications.map(NotificationBody::from).collect(),
    }))
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
    let alert = state.alerts.alert(&id).await?;
    caller.check_device(Action::Acknowledge, &alert_device(&alert))?;
    let own = caller.principal();
    let by = body.by.unwrap_or_else(|| own.clone());
    if by != own && own != ADMIN_NAME {
        return Err(Problem::invalid(
            "by must be your own name, or absent: only the admin token can name someone else",
        ));
    }
    let alert = state.alerts.acknowledge(&id, by.parse()?, note).await?;
    Ok(Json(alert.into()))
}
