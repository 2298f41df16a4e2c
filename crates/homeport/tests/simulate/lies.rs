//! Servers that acknowledge readings and then lose, repeat or change one: a check that cannot fail
//! would prove nothing.

use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::{count, homeport, show};

/// What a server does to the readings that it was sent before it shows them.
type Lie = fn(&mut Vec<Value>);

#[derive(Clone)]
struct Liar {
    stored: Arc<Mutex<Vec<Value>>>,
    lie: Lie,
}

async fn store(State(liar): State<Liar>, Json(body): Json<Value>) -> Json<Value> {
    let readings = body["readings"].as_array().expect("readings");
    let mut stored = liar.stored.lock().expect("no panic");
    let ids = |known: bool| -> Vec<Value> {
        let is_known = |id: &Value| stored.iter().any(|reading| reading["batch_id"] == *id);
        let ids = readings.iter().map(|reading| reading["batch_id"].clone());
        ids.filter(|id| is_known(id) == known).collect()
    };
    let (acknowledged, duplicate) = (ids(false), ids(true));
    let new = readings.iter();
    let new: Vec<Value> = new
        .filter(|reading| acknowledged.contains(&reading["batch_id"]))
        .cloned()
        .collect();
    stored.extend(new);
    Json(json!({
        "acknowledged_batch_ids": acknowledged, "duplicate_batch_ids": duplicate, "results": [],
    }))
}

async fn show_readings(State(liar): State<Liar>) -> Json<Value> {
    let mut readings = liar.stored.lock().expect("no panic").clone();
    (liar.lie)(&mut readings);
    Json(json!({ "readings": readings }))
}

/// Runs one device against a server that lies.
async fn run(lie: Lie) -> std::process::Output {
    let liar = Liar {
        stored: Arc::default(),
        lie,
    };
    let router = Router::new()
        .route("/v1/sensors/register", post(async || Json(json!({}))))
        .route("/v1/sensors/data", post(store))
        .route(
            "/v1/sensors/devices/{hardware_id}/readings",
            get(show_readings),
        )
        .with_state(liar);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let output = tokio::task::spawn_blocking(move || {
        homeport(&["simulate", "--url", &url, "--api-key", "any"])
            .args(["--sensors", "1", "--readings-per-sensor", "30"])
            .args(["--speed-up", "100000", "--disconnects", "0.3"])
            .output()
            .expect("the binary runs")
    })
    .await
    .expect("no panic");
    server.abort();
    output
}

#[tokio::test]
async fn an_honest_server_is_believed() {
    let output = run(|_| {}).await;
    assert!(output.status.success(), "{}", show(&output));
    assert_eq!(count(&output, "read back"), 30);
    assert!(count(&output, "disconnects") > 0, "{}", show(&output));
}

#[tokio::test]
async fn a_reading_that_is_gone_is_missed() {
    let output = run(|readings| {
        readings.remove(7);
    })
    .await;
    assert_eq!(output.status.code(), Some(1), "{}", show(&output));
    assert_eq!(count(&output, "missing"), 1);
}

#[tokio::test]
async fn a_reading_that_is_there_twice_is_seen() {
    let output = run(|readings| readings.push(readings[7].clone())).await;
    assert_eq!(output.status.code(), Some(1), "{}", show(&output));
    assert_eq!(count(&output, "repeated"), 1);
}

#[tokio::test]
async fn a_reading_that_was_changed_is_seen() {
    let output = run(|readings| readings[7]["sensors"]["light_lux"] = json!(-1)).await;
    assert_eq!(output.status.code(), Some(1), "{}", show(&output));
    assert_eq!(count(&output, "altered"), 1);
}
