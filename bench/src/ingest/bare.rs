//! The upper limit of an HTTP route: it only parses the same bodies into typed structs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write as _;

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::routing::post;
use serde::Deserialize;

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    readings: Vec<Reading<'a>>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "the fields are read from the body and not used")]
struct Reading<'a> {
    #[serde(borrow)]
    batch_id: Cow<'a, str>,
    #[serde(borrow)]
    hardware_id: Cow<'a, str>,
    #[serde(borrow)]
    boot_id: Cow<'a, str>,
    #[serde(borrow)]
    firmware_version: Cow<'a, str>,
    timestamp_ms: i64,
    #[serde(borrow)]
    sensors: BTreeMap<Cow<'a, str>, f64>,
    #[serde(borrow)]
    sensor_status: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
}

/// Serves until the process ends.
pub(crate) async fn serve() -> anyhow::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    {
        let mut out = std::io::stdout().lock();
        writeln!(out, "listening on http://{}", listener.local_addr()?)?;
        out.flush()?;
    }
    let router = Router::new().route("/v1/sensors/data", post(parse));
    axum::serve(listener, router).await?;
    Ok(())
}

async fn parse(body: Bytes) -> Result<String, StatusCode> {
    let request: Request<'_> =
        serde_json::from_slice(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
    Ok(format!("{{\"stored\":{}}}", request.readings.len()))
}
