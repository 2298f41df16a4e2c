//! Servers that lose, repeat or alter acknowledged readings, and servers that reject valid readings: the check must
//! detect each of them.

use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::{count, homeport, show};

/// What a server does to its stored readings before it returns them.
type Alteration = fn(&mut Vec<Value>);

/// A server's responses to readings.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Responses {
    Truthful,
    /// Rejects all and stores none.
    Rejected,
    /// Rejects the second of each request and stores the others.
    RejectedOne,
    /// Rejects all and stores them.
    RejectedAndKept,
    /// Reports all as expired and stores none.
    Expired,
}

#[derive(Clone)]
struct FaultyServer {
    stored: Arc<Mutex<Vec<Value>>>,
    alteration: Alteration,
    responses: Responses,
}

/// The negative result for a reading, if there is one, and whether the reading is stored nevertheless.
fn negative_result(responses: Responses, position: usize) -> Option<(&'static str, bool)> {
    match responses {
        Responses::Rejected => Some(("rejected", false)),
        Responses::RejectedOne => (position == 1).then_some(("rejected", false)),
        Responses::RejectedAndKept => Some(("rejected", true)),
        Responses::Expired => Some(("expired", false)),
        Responses::Truthful => None,
    }
}

async fn store(State(server_state): State<FaultyServer>, Json(body): Json<Value>) -> Json<Value> {
    let readings = body["readings"].as_array().expect("readings");
    let mut stored = server_state.stored.lock().expect("no panic");
    let (mut acknowledged, mut duplicate, mut results) = (vec![], vec![], vec![]);
    for (position, reading) in readings.iter().enumerate() {
        let id = &reading["batch_id"];
        let is_known = stored.iter().any(|stored| stored["batch_id"] == *id);
        let negative_result = negative_result(server_state.responses, position);
        if let Some((status, _)) = negative_result {
            results.push(json!({ "batch_id": id, "status": status }));
        }
        match negative_result {
            Some(("expired", _)) => acknowledged.push(id.clone()),
            Some(_) => {}
            None if is_known => duplicate.push(id.clone()),
            None => acknowledged.push(id.clone()),
        }
        if !is_known && negative_result.is_none_or(|(_, is_kept)| is_kept) {
            stored.push(reading.clone());
        }
    }
    Json(json!({
        "acknowledged_batch_ids": acknowledged, "duplicate_batch_ids": duplicate, "results": results,
    }))
}

async fn show_readings(State(server_state): State<FaultyServer>) -> Json<Value> {
    let mut readings = server_state.stored.lock().expect("no panic").clone();
    (server_state.alteration)(&mut readings);
    Json(json!({ "readings": readings }))
}

/// Runs one device against a server that returns altered readings.
async fn run(alteration: Alteration) -> std::process::Output {
    run_against(alteration, Responses::Truthful, &[]).await
}

/// Runs one device against a server that does not accept all readings.
async fn run_rejecting(responses: Responses, more: &'static [&str]) -> std::process::Output {
    run_against(|_| {}, responses, more).await
}

async fn run_against(
    alteration: Alteration,
    responses: Responses,
    more: &'static [&'static str],
) -> std::process::Output {
    let server_state = FaultyServer {
        stored: Arc::default(),
        alteration,
        responses,
    };
    let router = Router::new()
        .route("/v1/sensors/register", post(async || Json(json!({}))))
        .route("/v1/sensors/data", post(store))
        .route(
            "/v1/sensors/devices/{hardware_id}/readings",
            get(show_readings),
        )
        .with_state(server_state);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let output = tokio::task::spawn_blocking(move || {
        homeport(&["simulate", "--url", &url, "--api-key", "any"])
            .args(["--sensors", "1", "--readings-per-sensor", "30"])
            .args(["--speed-up", "100000", "--disconnects", "0.3"])
            .args(more)
            .output()
            .expect("the binary runs")
    })
    .await
    .expect("no panic");
    server.abort();
    output
}

#[tokio::test]
async fn honest_server_passes() {
    let output = run(|_| {}).await;
    assert!(output.status.success(), "{}", show(&output));
    assert_eq!(count(&output, "read back"), 30);
    assert!(count(&output, "disconnects") > 0, "{}", show(&output));
}

#[tokio::test]
async fn missing_reading_is_detected() {
    let output = run(|readings| {
        readings.remove(7);
    })
    .await;
    assert_eq!(output.status.code(), Some(1), "{}", show(&output));
    assert_eq!(count(&output, "missing"), 1);
}

#[tokio::test]
async fn repeated_reading_is_detected() {
    let output = run(|readings| readings.push(readings[7].clone())).await;
    assert_eq!(output.status.code(), Some(1), "{}", show(&output));
    assert_eq!(count(&output, "repeated"), 1);
}

#[tokio::test]
async fn altered_reading_is_detected() {
    let output = run(|readings| readings[7]["sensors"]["light_lux"] = json!(-1)).await;
    assert_eq!(output.status.code(), Some(1), "{}", show(&output));
    assert_eq!(count(&output, "altered"), 1);
}

#[tokio::test]
async fn server_that_rejects_everything_fails() {
    let output = run_rejecting(Responses::Rejected, &[]).await;
    assert_eq!(output.status.code(), Some(1), "{}", show(&output));
    assert_eq!(count(&output, "rejected"), 30);
    assert_eq!(count(&output, "acknowledged"), 0);
}

#[tokio::test]
async fn server_that_rejects_one_reading_fails() {
    let output = run_rejecting(Responses::RejectedOne, &[]).await;
    assert_eq!(output.status.code(), Some(1), "{}", show(&output));
    assert!(count(&output, "rejected") > 0, "{}", show(&output));
    assert!(count(&output, "acknowledged") > 0, "{}", show(&output));
}

#[tokio::test]
async fn rejected_but_stored_reading_is_detected() {
    let output = run_rejecting(Responses::RejectedAndKept, &[]).await;
    assert_eq!(output.status.code(), Some(1), "{}", show(&output));
    assert_eq!(count(&output, "rejected but stored"), 30);
}

#[tokio::test]
async fn early_expiry_is_detected() {
    let output = run_rejecting(Responses::Expired, &[]).await;
    assert_eq!(output.status.code(), Some(1), "{}", show(&output));
    assert_eq!(count(&output, "expired early"), 30);
}

#[tokio::test]
async fn server_that_acknowledges_nothing_fails() {
    // With a retention of one day, readings may have expired.
    let output = run_rejecting(Responses::Expired, &["--retention-days", "1"]).await;
    assert_eq!(output.status.code(), Some(1), "{}", show(&output));
    assert_eq!(count(&output, "expired"), 30);
    assert_eq!(count(&output, "expired early"), 0);
}
