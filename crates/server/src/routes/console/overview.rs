//! `/v1/overview`: how everything does, at a glance.

use axum::Json;
use axum::extract::State;
use homeport_systems::alerts::{AlertFilter, PAGE_MAX, StateFilter};
use homeport_systems::rules;
use serde::Serialize;
use utoipa::ToSchema;

use super::devices::{SystemWord, shown};
use crate::auth::Admin;
use crate::measure;
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;

/// Open alerts that are counted one by one; there are hardly ever so many.
const OPEN_COUNTED_MAX: usize = 10_000;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Overview {
    version: &'static str,
    /// RFC 3339
    started_at: String,
    systems: Vec<SystemBody>,
    ingest: IngestBody,
    alerts: AlertsBody,
    storage: StorageBody,
    /// Absent where the store is Amazon DynamoDB
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<CommitBody>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OverviewSystem)]
struct SystemBody {
    system: SystemWord,
    devices: usize,
    online: usize,
    late: usize,
    silent: usize,
}

/// Readings, events and messages since the start, whatever the way they came.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OverviewIngest)]
struct IngestBody {
    stored: u64,
    /// Known already, and not stored again
    duplicates: u64,
    rejected: u64,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OverviewAlerts)]
struct AlertsBody {
    open: usize,
    /// Of those that are open
    unacknowledged: usize,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OverviewStorage)]
struct StorageBody {
    /// On disk; absent where the store is Amazon DynamoDB
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    tables: Vec<StoredBody>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OverviewTable)]
struct StoredBody {
    name: String,
    /// About as many, where counting would take long
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

/// How long groups of writes took to be on disk, since the start.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OverviewCommit)]
struct CommitBody {
    count: u64,
    mean_ms: f64,
    p50_ms: f64,
    p99_ms: f64,
}

/// How everything does, at a glance
///
/// What is counted since the start only grows: who asks twice knows the rate.
#[utoipa::path(get, path = "/v1/overview", tag = "console", security(("admin_token" = [])), responses(
    (status = 200, description = "How everything does", body = Overview),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn get_overview(
    _: Admin,
    State(state): State<AppState>,
) -> Result<Json<Overview>, Problem> {
    let console = &state.console;
    let systems = console.fleet.counts().await?;
    let systems = systems.into_iter().map(|counted| SystemBody {
        system: counted.system.into(),
        devices: counted.counts.total(),
        online: counted.counts.online,
        late: counted.counts.late,
        silent: counted.counts.silent,
    });
    let tables = console.storage.tables().await?;
    let tables = tables.into_iter().map(|table| StoredBody {
        name: table.schema.name,
        items: table.items,
        bytes: table.bytes,
    });
    Ok(Json(Overview {
        version: env!("CARGO_PKG_VERSION"),
        started_at: shown(console.started_at),
        systems: systems.collect(),
        ingest: ingest(&state)?,
        alerts: open_alerts(&state).await?,
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

/// What came over HTTP is counted there; what came as a message, by the rules that it ran.
fn ingest(state: &AppState) -> Result<IngestBody, Problem> {
    let totals = measure::ingest_totals();
    let mut body = IngestBody {
        stored: totals.stored,
        duplicates: totals.duplicates,
        rejected: totals.rejected,
    };
    let mut cursor = None;
    loop {
        let page = state.rules.rules(rules::PAGE_MAX, cursor)?;
        for rule in &page.rules {
            body.stored += rule.counts.actions_done;
            body.rejected += rule.counts.failed + rule.counts.actions_failed;
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok(body);
        }
    }
}

async fn open_alerts(state: &AppState) -> Result<AlertsBody, Problem> {
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
        let unseen = page
            .alerts
            .iter()
            .filter(|alert| alert.acknowledged.is_none());
        body.unacknowledged += unseen.count();
        body.open += page.alerts.len();
        cursor = page.next;
        if cursor.is_none() || body.open >= OPEN_COUNTED_MAX {
            return Ok(body);
        }
    }
}
