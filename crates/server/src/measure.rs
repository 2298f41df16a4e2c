//! Metrics, in Prometheus' form at `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use homeport_systems::sensors::IngestOutcome;
use metrics::{counter, gauge, histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

const REQUEST_SECONDS: &str = "homeport_http_request_seconds";
/// Upper bounds of the latencies that are told apart.
const BUCKETS_SECS: [f64; 12] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
];

/// What came in since the process started, by what became of it: the same numbers as the metrics of
/// readings and events, for those who want to know them here.
static STORED: AtomicU64 = AtomicU64::new(0);
static DUPLICATES: AtomicU64 = AtomicU64::new(0);
static REJECTED: AtomicU64 = AtomicU64::new(0);

/// What came in since the process started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IngestTotals {
    pub(crate) stored: u64,
    pub(crate) duplicates: u64,
    pub(crate) rejected: u64,
}

/// Values that are asked for when someone looks.
pub trait Gauges: Send + Sync + 'static {
    /// Names and values.
    fn read(&self) -> Vec<(&'static str, f64)>;
}

/// Starts collecting; once per process.
///
/// # Errors
/// When something else collects already.
pub fn install_recorder() -> Result<PrometheusHandle, BuildError> {
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Full(REQUEST_SECONDS.to_owned()), &BUCKETS_SECS)?
        .install_recorder()
}

pub(crate) fn request(method: &Method, route: &str, status: StatusCode, took: Duration) {
    let method = known_method(method);
    let route = route.to_owned();
    counter!(
        "homeport_http_requests_total",
        "method" => method,
        "route" => route.clone(),
        "status" => status.as_u16().to_string()
    )
    .increment(1);
    histogram!(REQUEST_SECONDS, "method" => method, "route" => route).record(took);
}

/// Clients may send any word for a method: every one of them as a label would grow without end.
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

/// A record that was added.
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

/// What has expired on its way was accepted, and nobody will see it.
fn total(outcome: &str) {
    let total = match outcome {
        "stored" => &STORED,
        "duplicate" => &DUPLICATES,
        "rejected" => &REJECTED,
        _ => return,
    };
    total.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn charger_event(outcome: &'static str) {
    total(outcome);
    counter!("homeport_charger_events_total", "outcome" => outcome).increment(1);
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
    fn made_up_methods_share_one_label() {
        assert_eq!(known_method(&Method::PATCH), "PATCH");
        let made_up = Method::from_bytes(b"FOO123").expect("a word");
        assert_eq!(known_method(&made_up), "other");
    }
}
