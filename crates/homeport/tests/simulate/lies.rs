//! Servers that acknowledge readings and then lose, repeat or change one, and servers that turn good
//! readings away: a check that cannot fail would prove nothing.

use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::{count, homeport, show};

/// What a server does to the readings that it was sent before it shows them.
type Lie = fn(&mut Vec<Value>);

/// What a server says of the readings that it was sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Says {
    WhatItDid,
    /// It rejects all and stores none.
    Rejected,
    /// It rejects the second of each request and stores the others.
    RejectedOne,
    /// It rejects all and stores them.
    RejectedAndKept,
    /// It takes all for too old and stores none.
    Expired,
}

#[derive(Clone)]
struct Liar {
    stored: Arc<Mutex<Vec<Value>>>,
    lie: Lie,
    says: Says,
}

/// What is said of a reading, where it is turned away, and whether it is stored all the same.
fn turned_away(says: Says, position: usize) -> Option<(&'static str, bool)> {
    match says {
        Says::Rejected => Some(("rejected", false)),
        Says::RejectedOne => (position == 1).then_some(("rejected", false)),
        Says::RejectedAndKept => Some(("rejected", true)),
        Says::Expired => Some(("expired", false)),
        Says::WhatItDid => None,
    }
}

async fn store(State(liar): State<Liar>, Json(body): Json<Value>) -> Json<Value> {
    let readings = body["readings"].as_array().expect("readings");
    let mut stored = liar.stored.lock().expect("no panic");
    let (mut acknowledged, mut duplicate, mut results) = (vec![], vec![], vec![]);
    for (position, reading) in readings.iter().enumerate() {
        let id = &reading["batch_id"];
        let is_known = stored.iter().any(|stored| stored["batch_id"] == *id);
        let turned_away = turned_away(liar.says, position);
        if let Some((status, _)) = turned_away {
            results.push(json!({ "batch_id": id, "status": status }));
        }
        match turned_away {
            Some(("expired", _)) => acknowledged.push(id.clone()),
            Some(_) => {}
            None if is_known => duplicate.push(id.clone()),
            None => acknowledged.push(id.clone()),
        }
        if !is_known && turned_away.is_none_or(|(_, is_kept)| is_kept) {
            stored.push(reading.clone());
        }
    }
    Json(json!({
        "acknowledged_batch_ids": acknowledged, "duplicate_batch_ids": duplicate, "results": results,
    }))
}

async fn show_readings(State(liar): State<Liar>) -> Json<Value> {
    let mut readings = liar.stored.lock().expect("no panic").clone();
    (liar.lie)(&mut readings);
    Json(json!({ "readings": readings }))
}

/// Runs one device against a server that lies about what it has.
async fn run(lie: Lie) -> std::process::Output {
    run_against(lie, Says::WhatItDid, &[]).await
}

/// Runs one device against a server that turns readings away.
async fn turn_away(says: Says, more: &'static [&str]) -> std::process::Output {
    run_against(|_| {}, says, more).await
}

async fn run_against(lie: Lie, says: Says, more: &'static [&'static str]) -> std::process::Output {
    let liar = Liar {
        stored: Arc::default(),
        lie,
        says,
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

#[tokio::test]
async fn a_server_that_rejects_everything_is_no_good_one() {
    let output = turn_away(Says::Rejected, &[]).await;
    assert_eq!(output.status.code(), Some(1), "{}", show(&output));
    assert_eq!(count(&output, "rejected"), 30);
    assert_eq!(count(&output, "acknowledged"), 0);
}

#[tokio::test]
async fn a_server_that_rejects_a_good_reading_is_no_good_one() {
    let output = turn_away(Says::RejectedOne, &[]).await;
    assert_eq!(output.status.code(), Some(1), "{}", show(&output));
    assert!(count(&output, "rejected") > 0, "{}", show(&output));
    assert!(count(&output, "acknowledged") > 0, "{}", show(&output));
}

#[tokio::test]
async fn a_reading_that_was_rejected_and_is_there_is_seen() {
    let output = turn_away(Says::RejectedAndKept, &[]).await;
    assert_eq!(output.status.code(), Some(1), "{}", show(&output));
    assert_eq!(count(&output, "kept anyway"), 30);
}

#[tokio::test]
async fn a_young_reading_that_is_said_to_have_expired_is_seen() {
    let output = turn_away(Says::Expired, &[]).await;
    assert_eq!(output.status.code(), Some(1), "{}", show(&output));
    assert_eq!(count(&output, "gone early"), 30);
}

#[tokio::test]
async fn a_server_that_acknowledges_nothing_is_no_good_one() {
    // Where nothing is kept for longer than a day, readings may have expired.
    let output = turn_away(Says::Expired, &["--retention-days", "1"]).await;
    assert_eq!(output.status.code(), Some(1), "{}", show(&output));
    assert_eq!(count(&output, "expired"), 30);
    assert_eq!(count(&output, "gone early"), 0);
}
