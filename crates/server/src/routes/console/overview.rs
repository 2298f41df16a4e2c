//! `/v1/overview`: state of devices, ingest, alerts and storage.

use axum::Json;
use axum::extract::State;
use homeport_systems::alerts::{AlertFilter, PAGE_MAX, StateFilter};
use homeport_systems::rules;
use serde::Serialize;
use utoipa::ToSchema;

use super::devices::{format_time, is_visible};
use crate::auth::needs::Read;
use crate::auth::{Action, Authenticated, Caller, People};
use crate::metrics;
use crate::openapi::enums::DeviceSystem;
use crate::problem::Problem;
use crate::routes::alerts::alert_device;
use crate::state::AppState;

/// Maximum number of open alerts that are counted.
const OPEN_COUNTED_MAX: usize = 10_000;

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Overview {
    version: &'static str,
    /// RFC 3339
    started_at: String,
    systems: Vec<SystemBody>,
    ingest: IngestBody,
    alerts: AlertsBody,
    storage: StorageBody,
    /// Absent if the store is Amazon DynamoDB
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<CommitBody>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OverviewSystem)]
struct SystemBody {
    system: DeviceSystem,
    devices: usize,
    online: usize,
    late: usize,
    silent: usize,
}

/// Readings, events and messages since the start, over HTTP and MQTT.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OverviewIngest)]
struct IngestBody {
    stored: u64,
    /// Repeats that were not stored again
    duplicates: u64,
    rejected: u64,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OverviewAlerts)]
struct AlertsBody {
    open: usize,
    /// Open alerts that are not acknowledged
    unacknowledged: usize,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OverviewStorage)]
struct StorageBody {
    /// Bytes on disk; absent if the store is Amazon DynamoDB
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    tables: Vec<StoredBody>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OverviewTable)]
struct StoredBody {
    name: String,
    /// An estimate where counting would take long
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

/// Commit latencies since the start.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OverviewCommit)]
struct CommitBody {
    count: u64,
    mean_ms: f64,
    p50_ms: f64,
    p99_ms: f64,
}

/// Get an overview of devices, ingest, alerts and storage
///
/// Counts since the start only increase; the difference of two responses is a rate.
#[utoipa::path(get, path = "/v1/overview", tag = "console", security(("admin_token" = [])), responses(
    (status = 200, description = "The overview", body = Overview),
))]
pub(super) async fn get_overview(
    caller: Authenticated<People<Read>>,
    State(state): State<AppState>,
) -> Result<Json<Overview>, Problem> {
    let console = &state.console;
    let systems = console
        .fleet
        .counts(|device| is_visible(&caller, device))
        .await?;
    let systems = systems.into_iter().map(|counted| SystemBody {
        system: counted.system.into(),
        devices: counted.counts.total(),
        online: counted.counts.online,
        late: counted.counts.late,
        silent: counted.counts.silent,
    });
    // Sizes of tables are about the whole server.
    let tables = match caller.check_everywhere(Action::Read) {
        Ok(()) => console.storage.tables().await?,
        Err(_) => Vec::new(),
    };
    let tables = tables.into_iter().map(|table| StoredBody {
        name: table.schema.name,
        items: table.items,
        bytes: table.bytes,
    });
    Ok(Json(Overview {
        version: env!("CARGO_PKG_VERSION"),
        started_at: format_time(console.started_at),
        systems: systems.collect(),
        ingest: ingest(&state)?,
        alerts: open_alerts(&state, &caller).await?,
        storage: StorageBody {
            bytes: console.storage.disk_bytes(),
            tables: tables.collect(),
        },
        commit: console.storage.commit_times().map(|times| CommitBody {
            count: times.count,
            mean_ms: times.mean_ms,
            p50_ms: times.p50_ms,
            p99_ms: times.p99_ms,
        }),
    }))
}

/// HTTP ingest has its own counts; messages are counted by the actions of rules.
fn ingest(state: &AppState) -> Result<IngestBody, Problem> {
    let totals = metrics::ingest_totals();
    let mut body = IngestBody {
        stored: totals.stored,
        duplicates: totals.duplicates,
        rejected: totals.rejected,
    };
    let mut cursor = None;
    loop {
        let page = state.rules.rules(rules::PAGE_MAX, cursor)?;
        for rule in &page.items {
            body.stored += rule.counts.actions_done;
            body.rejected += rule.counts.failed + rule.counts.actions_failed;
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok(body);
        }
    }
}

async fn open_alerts(state: &AppState, caller: &Caller) -> Result<AlertsBody, Problem> {
    let filter = AlertFilter {
        state: StateFilter::Open,
        ..AlertFilter::default()
    };
    let mut body = AlertsBody {
        open: 0,
        unacknowledged: 0,
    };
    let mut cursor = None;
    loop {
        let page = state.alerts.alerts(&filter, PAGE_MAX, cursor).await?;
        let visible = page.items.iter().filter(|alert| {
            let device = alert_device(alert);
            caller.check_device(Action::Read, &device).is_ok()
        });
        for alert in visible {
            body.open += 1;
            body.unacknowledged += usize::from(alert.acknowledged.is_none());
        }
        cursor = page.next;
        if cursor.is_none() || body.open >= OPEN_COUNTED_MAX {
            return Ok(body);
        }
    }
}
