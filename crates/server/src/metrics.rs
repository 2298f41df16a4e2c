//! Metrics in the Prometheus format, served at `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use homeport_systems::sensors::IngestOutcome;
use metrics::{counter, gauge, histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use crate::problem::limit_of;

const REQUEST_SECONDS: &str = "homeport_http_request_seconds";
/// Upper bounds of the latency histogram's buckets.
const BUCKETS_SECS: [f64; 12] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
];

/// How often buffered latencies are moved to the histogram.
const DRAIN_INTERVAL: Duration = Duration::from_secs(5);

/// Readings, events and records since the start of the process, by outcome. The console shows the same numbers as
/// the metrics.
static STORED: AtomicU64 = AtomicU64::new(0);
static DUPLICATES: AtomicU64 = AtomicU64::new(0);
static REJECTED: AtomicU64 = AtomicU64::new(0);

/// Ingested readings, events and records since the start of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IngestTotals {
    pub(crate) stored: u64,
    pub(crate) duplicates: u64,
    pub(crate) rejected: u64,
}

/// Gauges that are read when metrics are rendered.
pub trait Gauges: Send + Sync + 'static {
    /// Names and values.
    fn read(&self) -> Vec<(&'static str, f64)>;
}

/// Installs the metrics recorder. Call it once per process.
///
/// # Errors
/// If a recorder is already installed.
pub fn install_recorder() -> Result<PrometheusHandle, BuildError> {
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Full(REQUEST_SECONDS.to_owned()), &BUCKETS_SECS)?
        .install_recorder()
}

/// Moves buffered latencies to the histogram every few seconds, until `stop` completes.
pub async fn drain_latencies_until(metrics: PrometheusHandle, stop: impl Future<Output = ()>) {
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => return,
            // IMPORTANT: the recorder buffers every latency until then. Without this loop, memory grows with each
            // request on a server whose `/metrics` is never read.
            () = tokio::time::sleep(DRAIN_INTERVAL) => metrics.run_upkeep(),
        }
    }
}

pub(crate) fn request(method: &Method, route: &str, status: StatusCode, duration: Duration) {
    let method = known_method(method);
    let route = route.to_owned();
    counter!(
        "homeport_http_requests_total",
        "method" => method,
        "route" => route.clone(),
        "status" => status.as_u16().to_string()
    )
    .increment(1);
    histogram!(REQUEST_SECONDS, "method" => method, "route" => route).record(duration);
}

/// A method as a label. Clients can send any text as a method, so unknown ones share one label.
pub(crate) fn known_method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

pub(crate) fn reading(outcome: &IngestOutcome) {
    let outcome = match outcome {
        IngestOutcome::Stored => "stored",
        IngestOutcome::Duplicate => "duplicate",
        IngestOutcome::Expired => "expired",
        IngestOutcome::Rejected(_) => "rejected",
    };
    counter!("homeport_readings_total", "outcome" => outcome).increment(1);
    total(outcome);
}

pub(crate) fn reading_rejected() {
    total("rejected");
    counter!("homeport_readings_total", "outcome" => "rejected").increment(1);
}

/// Counts an added record.
pub(crate) fn record() {
    total("stored");
}

pub(crate) fn ingest_totals() -> IngestTotals {
    let read = |total: &AtomicU64| total.load(Ordering::Relaxed);
    IngestTotals {
        stored: read(&STORED),
        duplicates: read(&DUPLICATES),
        rejected: read(&REJECTED),
    }
}

/// Adds to the totals. Expired readings are accepted but never visible, so they count in no total.
fn total(outcome: &str) {
    let total = match outcome {
        "stored" => &STORED,
        "duplicate" => &DUPLICATES,
        "rejected" => &REJECTED,
        _ => return,
    };
    total.fetch_add(1, Ordering::Relaxed);
}

/// Counts a request, or an item of one, beyond a limit.
pub(crate) fn limit_exceeded(limit: &'static str) {
    counter!("homeport_limit_exceeded_total", "limit" => limit).increment(1);
}

/// Counts an item of a request if its error code reports a limit.
pub(crate) fn item_rejected(code: Option<&str>) {
    if let Some(limit) = code.and_then(limit_of) {
        limit_exceeded(limit);
    }
}

pub(crate) fn charger_event(outcome: &'static str) {
    total(outcome);
    counter!("homeport_charger_events_total", "outcome" => outcome).increment(1);
}

/// Counts an uplink that is stored without being decoded.
pub(crate) fn undecoded_uplink() {
    counter!("homeport_charger_uplinks_undecoded_total").increment(1);
}

pub(crate) fn render(handle: &PrometheusHandle, gauges: &dyn Gauges, keys_cached: usize) -> String {
    for (name, value) in gauges.read() {
        gauge!(name).set(value);
    }
    gauge!("homeport_api_keys_cached").set(keys_cached as f64);
    handle.run_upkeep();
    handle.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_methods_share_one_label() {
        assert_eq!(known_method(&Method::PATCH), "PATCH");
        let unknown = Method::from_bytes(b"FOO123").expect("a word");
        assert_eq!(known_method(&unknown), "other");
    }
}
