//! `POST /v1/alerts/definitions/preview`

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use homeport_systems::alerts::{DevicePreview, Preview, PreviewRange, PreviewedAlert};
use homeport_systems::time::{EpochMillis, UtcMillis};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::definition_terms::TermsBody;
use crate::auth::needs::ManageAlertRules;
use crate::auth::{Authenticated, Everywhere};
use crate::openapi::enums::AlertPreviewLimit;
use crate::openapi::schemas;
use crate::problem::Problem;
use crate::request::{JsonBody, RequestTimes, UrlQuery};
use crate::state::AppState;

/// How much history is judged unless a request says otherwise.
const RANGE_DEFAULT_MS: i64 = 7 * 24 * 60 * 60 * 1000;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PreviewQuery {
    /// Oldest time, included; default a week before `to`
    #[param(schema_with = schemas::time, required = false)]
    from: Option<String>,
    /// Newest time, included; default now
    #[param(schema_with = schemas::time, required = false)]
    to: Option<String>,
}

/// The range of history, which is checked before the body is read.
pub(super) struct RequestedRange(PreviewRange);

impl FromRequestParts<AppState> for RequestedRange {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let UrlQuery(query) = UrlQuery::<PreviewQuery>::from_request_parts(parts, state).await?;
        let times = RequestTimes::new(state, None);
        let (from, to) = times.bounds(query.from.as_deref(), query.to.as_deref())?;
        let to = to.unwrap_or(times.now());
        let from = from.unwrap_or(EpochMillis(to.0.saturating_sub(RANGE_DEFAULT_MS)));
        Ok(Self(PreviewRange { from, to }))
    }
}

/// What an alert definition would have raised and cleared.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertPreview)]
pub(super) struct PreviewBody {
    from: String,
    to: String,
    /// Number of alerts of all devices
    #[schema(example = 7)]
    raised: usize,
    /// Devices with alerts
    devices: Vec<DevicePreviewBody>,
    /// Number of devices whose history was judged to its end
    devices_judged: usize,
    /// Number of stored items that were read
    items_read: usize,
    /// Limits that cut the preview short; empty if it is complete
    limits_reached: Vec<AlertPreviewLimit>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertPreviewDevice)]
struct DevicePreviewBody {
    /// Thing name, hardware id, SC-ID, or group/device/journal
    device: String,
    /// Number of its alerts
    raised: usize,
    alerts: Vec<PreviewedAlertBody>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertPreviewAlert)]
struct PreviewedAlertBody {
    raised_at: String,
    #[schema(example = "battery.volts is 11.8, below 12")]
    reason: String,
    /// Absent if the alert would be open at the end
    #[serde(skip_serializing_if = "Option::is_none")]
    cleared_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clear_reason: Option<String>,
}

fn time(at: EpochMillis) -> String {
    UtcMillis::new(at).to_string()
}

impl From<DevicePreview> for DevicePreviewBody {
    fn from(device: DevicePreview) -> Self {
        let alerts = device.alerts.into_iter();
        Self {
            device: device.device.into(),
            raised: device.raised,
            alerts: alerts.map(PreviewedAlertBody::from).collect(),
        }
    }
}

impl From<PreviewedAlert> for PreviewedAlertBody {
    fn from(alert: PreviewedAlert) -> Self {
        let (cleared_at, clear_reason) = alert.cleared.unzip();
        Self {
            raised_at: time(alert.raised_at),
            reason: alert.reason,
            cleared_at: cleared_at.map(time),
            clear_reason,
        }
    }
}

impl PreviewBody {
    fn new(preview: Preview, range: PreviewRange) -> Self {
        let limits = preview.limits_reached.into_iter();
        let devices = preview.devices.into_iter();
        Self {
            from: time(range.from),
            to: time(range.to),
            raised: preview.raised,
            devices: devices.map(DevicePreviewBody::from).collect(),
            devices_judged: preview.devices_judged,
            items_read: preview.items_read,
            limits_reached: limits.map(AlertPreviewLimit::from).collect(),
        }
    }
}

/// Preview an alert definition: what it would have raised in stored history
///
/// The body is a definition as it would be created. Nothing is stored, and nobody is notified. Values count as
/// stored at their own times. A preview ends at 1000 devices, 200,000 items or ten seconds, and lists 1000 alerts;
/// `limits_reached` says so.
#[utoipa::path(post, path = "/v1/alerts/definitions/preview", tag = "alerts",
    security(("admin_token" = [])), params(PreviewQuery), request_body = TermsBody, responses(
    (status = 200, description = "What would have been raised and cleared", body = PreviewBody),
    (status = 503, description = "Too many previews are running, or the store is unavailable"),
))]
pub(super) async fn preview_alert_definition(
    _: Authenticated<Everywhere<ManageAlertRules>>,
    State(state): State<AppState>,
    RequestedRange(range): RequestedRange,
    JsonBody(body): JsonBody<TermsBody>,
) -> Result<Json<PreviewBody>, Problem> {
    let preview = state.alerts.preview(body.try_into()?, range).await?;
    Ok(Json(PreviewBody::new(preview, range)))
}
