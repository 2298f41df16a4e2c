//! Workloads: clients that write, remember what was acknowledged, and compare it with what is stored.

mod backups;
mod bank;
mod bank_audit;
mod bulk;
mod chargers;
mod counters;
mod records;
mod registers;
mod sensors;
mod stream;
mod tables;
mod telemetry;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::clients::{Caller, Clients};
use crate::history::Recorder;
use homeport_simulate::SeededRandom;

pub(crate) use telemetry::Telemetry;

/// The result of a writer's operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperationResult {
    /// Something was written and acknowledged.
    Acknowledged,
    /// Nothing was written: a successful read, or a repeated write.
    Read,
    Refused,
    Unknown,
}

impl OperationResult {
    pub(crate) const ALL: [Self; 4] =
        [Self::Acknowledged, Self::Read, Self::Refused, Self::Unknown];
}

/// Why a verification fails.
#[derive(Debug)]
pub(crate) enum Problem {
    /// Something is wrong or missing.
    Violation(String),
    /// The server responds with an error, but nothing is wrong.
    Unreadable(String),
}

impl From<String> for Problem {
    fn from(why: String) -> Self {
        Self::Unreadable(why)
    }
}

/// The server that is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The server that the writers use, while they are paused.
    Live,
    /// A server on a damaged copy of its directory.
    Copy,
}

#[async_trait]
pub(crate) trait Workload: Send + Sync {
    fn name(&self) -> &'static str;

    /// Number of concurrent writers.
    fn lanes(&self) -> usize {
        2
    }

    /// Creates what the writers need.
    async fn prepare(&self, clients: &mut Clients) -> Result<(), String>;

    /// Does one write or one verifying read. An error is a violation.
    async fn write(
        &self,
        lane: usize,
        clients: &mut Clients,
        random: &mut SeededRandom,
    ) -> Result<OperationResult, String>;

    /// Checks that everything acknowledged is stored, and nothing else.
    async fn verify(&self, clients: &mut Clients, scope: Scope) -> Result<(), Problem>;
}

/// All workloads of a round.
pub(crate) struct Workloads {
    pub(crate) all: Vec<Arc<dyn Workload>>,
    pub(crate) telemetry: Arc<Telemetry>,
}

impl Workloads {
    pub(crate) fn new(now_ms: i64, recorder: &Recorder) -> Self {
        let telemetry = Arc::new(Telemetry::new());
        let bank = Arc::new(bank::Bank::new());
        let all: Vec<Arc<dyn Workload>> = vec![
            Arc::new(sensors::Sensors::new(now_ms)),
            Arc::new(chargers::Chargers::new(now_ms)),
            Arc::new(records::Records::new(now_ms)),
            telemetry.clone(),
            Arc::new(counters::Counters::new()),
            bank.clone(),
            Arc::new(bulk::Bulk::new()),
            Arc::new(registers::Registers::new(recorder.clone())),
            Arc::new(tables::Tables::new()),
            Arc::new(backups::Backups::new(bank)),
        ];
        Self { all, telemetry }
    }
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn violation<T>(text: String) -> Result<T, Problem> {
    Err(Problem::Violation(text))
}

/// The value that belongs to a number, for comparison with a stored value.
fn value_of(lane: usize, number: u32) -> u64 {
    SeededRandom::new([lane as u64, u64::from(number)]).next_u64() % 100_000
}

/// Creates an API key.
async fn create_key(clients: &mut Clients, system: &str) -> Result<String, String> {
    let mut body = json!({"description": "torture", "system": system, "all": true});
    if system == "telemetry" {
        body["permissions"] = json!(["subscribe_fleet"]);
    }
    let reply = clients
        .http(Caller::Operator, "POST", "/v1/api-keys", Some(&body))
        .await;
    let created = reply.done()?;
    let key = created["api_key"].as_str();
    key.map(str::to_owned)
        .ok_or_else(|| format!("no key in {created}"))
}

/// All members of a paged list; a cursor is appended to `path`.
async fn pages(clients: &mut Clients, path: &str, list: &str) -> Result<Vec<Value>, String> {
    let mut all = Vec::new();
    let mut cursor = String::new();
    loop {
        let path = format!("{path}{cursor}");
        let answer = clients.http(Caller::Operator, "GET", &path, None).await;
        let mut answer = answer.done().map_err(|why| format!("GET {path}: {why}"))?;
        // The record store wraps responses in an envelope.
        if answer.get("response").is_some() {
            answer = answer["response"].take();
        }
        match answer[list].take() {
            Value::Array(members) => all.extend(members),
            _ => return Err(format!("GET {path}: no {list} in {answer}")),
        }
        match answer["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok(all),
        }
    }
}

/// All items of a table or an index.
async fn scan(clients: &mut Clients, mut request: Value) -> Result<Vec<Value>, String> {
    let mut all = Vec::new();
    loop {
        let mut answer = clients.dynamodb("Scan", &request).await.done()?;
        match answer["Items"].take() {
            Value::Array(items) => all.extend(items),
            _ => return Err(format!("no items in {answer}")),
        }
        match answer["LastEvaluatedKey"].take() {
            Value::Null => return Ok(all),
            key => request["ExclusiveStartKey"] = key,
        }
    }
}

/// A number attribute of an item.
fn number(item: &Value, name: &str) -> Option<i64> {
    item[name]["N"].as_str()?.parse().ok()
}

/// Creates a table with a partition key `pk` and waits until it is active.
async fn create_table(clients: &mut Clients, mut definition: Value) -> Result<(), String> {
    definition["KeySchema"] = json!([{"AttributeName": "pk", "KeyType": "HASH"}]);
    definition["BillingMode"] = json!("PAY_PER_REQUEST");
    if definition.get("AttributeDefinitions").is_none() {
        definition["AttributeDefinitions"] = json!([{"AttributeName": "pk", "AttributeType": "S"}]);
    }
    clients.dynamodb("CreateTable", &definition).await.done()?;
    let name = definition["TableName"].as_str().unwrap_or_default();
    wait_active(clients, name).await
}

async fn wait_active(clients: &mut Clients, name: &str) -> Result<(), String> {
    for _ in 0..WAIT_POLLS_MAX {
        let request = json!({"TableName": name});
        let answer = clients.dynamodb("DescribeTable", &request).await.done()?;
        if answer["Table"]["TableStatus"] == "ACTIVE" {
            return Ok(());
        }
        tokio::time::sleep(WAIT_POLL).await;
    }
    Err(format!("{name} does not become active"))
}

const WAIT_POLL: std::time::Duration = std::time::Duration::from_millis(20);
const WAIT_POLLS_MAX: usize = 1000;
