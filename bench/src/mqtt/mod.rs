//! MQTT messages with QoS 1 that the telemetry rule stores durably, compared with Mosquitto, which acknowledges the same
//! messages without storing them: an upper limit, not a rival.

mod publisher;
mod report;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context as _, ensure};

use crate::load::connection::Connection;
use crate::load::drive::Driven;
use crate::load::server::{self, ADMIN_TOKEN, Homeport};
use crate::load::template::{Body, Template};
use crate::measure::{Measured, Round};
use crate::process;
use crate::wire::Times;
use publisher::{Identity, Publisher};
use report::MqttRow;

const CONNECTIONS: [usize; 3] = [1, 16, 64];
const TABLE: &str = "van-telemetry";

/// Measures every row and prints the tables.
pub(crate) fn run(directory: &Path, times: Times, only: Option<&str>) -> anyhow::Result<()> {
    let homeport = server::start_homeport(&directory.join("homeport-mqtt"))?;
    let Some(mosquitto) = server::start_mosquitto(directory)? else {
        println!("## MQTT");
        println!();
        println!("Mosquitto is not installed, so there is nothing to compare with.");
        return Ok(());
    };
    let sent = Arc::new(AtomicU64::new(0));
    let mut rows = Vec::new();
    for connections in CONNECTIONS {
        let mut row = MqttRow::new(connections);
        if only.is_some_and(|only| !row.name().contains(only)) {
            continue;
        }
        eprintln!("measuring: {}", row.name());
        for _ in 0..times.rounds {
            homeport.dynamodb.settle();
            row.add(publish(homeport.mqtt, connections, times, &sent)?);
            let limit = publish(mosquitto.address, connections, times, &AtomicU64::new(0))?;
            row.mosquitto.add(limit.round);
        }
        row.resident_bytes = homeport.dynamodb.resident_bytes();
        rows.push(row);
    }
    check(&homeport, sent.load(Ordering::Relaxed)).context("counting what is stored")?;
    report::print(&rows, &homeport.dynamodb, &mosquitto);
    Ok(())
}

/// One round: every connection publishes as its own thing.
fn publish(
    address: SocketAddr,
    connections: usize,
    times: Times,
    sent: &AtomicU64,
) -> anyhow::Result<Driven> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut publishers = Vec::with_capacity(connections);
        for number in 0..connections {
            let identity = Identity {
                client_id: format!("bench-{number}"),
                user: "admin",
                password: ADMIN_TOKEN,
            };
            let topic = format!("van/bench-van-{number:02}/telemetry");
            publishers.push(Publisher::connect(address, &identity, topic).await?);
        }
        let cpu_before = process::cpu_time(process::SELF);
        let started = Instant::now();
        let until = started + times.round;
        let tasks: Vec<_> = publishers
            .into_iter()
            .map(|mut publisher| {
                tokio::spawn(async move {
                    let mut number = 0_u64;
                    let payload = || {
                        number += 1;
                        payload(number)
                    };
                    publisher.publish(until, payload).await
                })
            })
            .collect();
        let mut latencies = Vec::new();
        for task in tasks {
            latencies.extend(task.await.context("a publisher panicked")??);
        }
        let secs = started.elapsed().as_secs_f64();
        let cpu = process::cpu_time(process::SELF) - cpu_before;
        sent.fetch_add(latencies.len() as u64, Ordering::Relaxed);
        Ok(Driven {
            round: Round {
                rate: latencies.len() as f64 / secs,
                latencies,
            },
            client_cpu_percent: cpu.as_secs_f64() / secs * 100.0,
        })
    })
}

/// A van's message of every half minute, as in the design document.
fn payload(number: u64) -> String {
    let tenths = number % 30;
    format!(
        "{{\"battery_voltage\":1{}.{},\"glycol_temp\":{},\"pdm1\":{{\"1\":true,\"2\":false,\"3\":true,\"4\":false}},\
         \"pdm2\":{{\"1\":false,\"2\":true,\"3\":false,\"4\":false}},\"hvac_mode\":\"heat\",\"hvac_temp\":{},\"sequence\":{number}}}",
        tenths / 10,
        tenths % 10,
        60 + number % 40,
        60 + number % 15,
    )
}

/// Checks that exactly the acknowledged messages are stored.
fn check(homeport: &Homeport, sent: u64) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut connection = Connection::open(homeport.dynamodb.address).await?;
        let mut stored = 0;
        let mut start = serde_json::Value::Null;
        loop {
            let mut request = serde_json::json!({"TableName": TABLE, "Select": "COUNT"});
            if !start.is_null() {
                request["ExclusiveStartKey"] = start;
            }
            let headers = "Content-Type: application/x-amz-json-1.0\r\nX-Amz-Target: DynamoDB_20120810.Scan\r\n";
            let body = Body::default().text(&request.to_string());
            let answer = connection.exchange(Template::post("/", headers, &body).fill(0)).await?;
            ensure!(answer.status == 200, "status {}", answer.status);
            let mut answer: serde_json::Value = serde_json::from_slice(answer.body)?;
            stored += answer["Count"].as_u64().context("a count")?;
            start = answer["LastEvaluatedKey"].take();
            if start.is_null() {
                break;
            }
        }
        ensure!(stored == sent, "{sent} messages were acknowledged and {stored} are stored");
        Ok(())
    })
}

impl MqttRow {
    fn new(connections: usize) -> Self {
        Self {
            connections,
            ours: Measured::default(),
            mosquitto: Measured::default(),
            client_cpu_percent: 0.0,
            resident_bytes: 0,
        }
    }

    fn add(&mut self, driven: Driven) {
        self.ours.add(driven.round);
        self.client_cpu_percent = self.client_cpu_percent.max(driven.client_cpu_percent);
    }
}
