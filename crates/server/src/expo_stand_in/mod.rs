//! A stand-in for Expo's push service, for rehearsals: `homeport simulate` and the tests send through
//! it. It refuses what Expo refuses, fails on demand, and remembers what it took.
//!
//! It is stricter than Expo where that helps: messages come as an array in gzip, and a malformed
//! token spoils its request.

mod rules;
mod said;

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::post;
use homeport_store::Clock;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

use crate::expo::{RECEIPTS, SEND};

/// Requests that are larger, packed or unpacked, are not read.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Messages that are remembered; more are not taken.
const TAKEN_MAX: usize = 10_000_000;
/// Failures that can be waiting to happen.
const FAULTS_MAX: usize = 10_000;

/// What it does instead of answering a request in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Whether the messages are delivered all the same.
    pub takes: bool,
    pub then: Then,
}

/// How a request ends that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// With this status and, perhaps, a time to wait in seconds.
    Status(u16, Option<u64>),
    /// With something that is no answer of Expo's.
    Nonsense,
    /// With a connection that breaks off.
    BreakOff,
    /// Not at all.
    Silence,
}

/// What becomes of messages to a token.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Outcome {
    #[default]
    Delivered,
    /// The ticket has this error.
    TicketError(String),
    /// The ticket is fine, and the receipt has this error.
    ReceiptError(String),
    /// The ticket is fine, and there is no receipt.
    NoReceipt,
}

/// A message that was taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken {
    /// What it says, without the token.
    pub message: Map<String, Value>,
    pub ticket_id: String,
}

/// Decides for a request's messages whether something goes wrong.
type Weather = Box<dyn FnMut(&[Value]) -> Option<Fault> + Send>;

/// The service.
#[derive(Clone)]
pub struct ExpoStandIn {
    clock: Arc<dyn Clock>,
    access_token: Option<String>,
    memory: Arc<Mutex<Memory>>,
}

#[derive(Default)]
struct Memory {
    faults: VecDeque<Fault>,
    receipt_faults: VecDeque<Fault>,
    weather: Option<Weather>,
    outcomes: HashMap<String, Outcome>,
    projects: HashMap<String, String>,
    taken: HashMap<String, Vec<Taken>>,
    taken_count: usize,
    receipts: HashMap<String, Outcome>,
    /// When how many messages were taken, within the last second.
    recent: VecDeque<(i64, usize)>,
    requests: u64,
}

impl ExpoStandIn {
    /// A service that takes requests with this access token only, or all if there is none.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, access_token: Option<String>) -> Self {
        Self {
            clock,
            access_token,
            memory: Arc::default(),
        }
    }

    /// Serves until `stop` is done.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> std::io::Result<()> {
        let router = Router::new()
            .route(SEND, post(send))
            .route(RECEIPTS, post(receipts))
            .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
            .with_state(self);
        // Dropped and not drained: a request that is left in silence would never end.
        tokio::select! {
            served = async { axum::serve(listener, router).await } => served,
            () = stop => Ok(()),
        }
    }

    /// Makes the next request that sends go wrong; several faults happen one after another.
    pub fn fail_next(&self, fault: Fault) {
        let mut memory = self.memory();
        if memory.faults.len() < FAULTS_MAX {
            memory.faults.push_back(fault);
        }
    }

    /// The same for requests that ask for receipts.
    pub fn fail_next_receipts(&self, fault: Fault) {
        let mut memory = self.memory();
        if memory.receipt_faults.len() < FAULTS_MAX {
            memory.receipt_faults.push_back(fault);
        }
    }

    /// Lets `weather` decide about each request that sends. It sees messages as they came.
    pub fn set_weather(&self, weather: impl FnMut(&[Value]) -> Option<Fault> + Send + 'static) {
        self.memory().weather = Some(Box::new(weather));
    }

    /// What becomes of messages to this token from now on.
    pub fn set_outcome(&self, token: &str, outcome: Outcome) {
        self.memory().outcomes.insert(token.to_owned(), outcome);
    }

    /// Makes the token one of this project. All that were not given one are of the same.
    pub fn set_project(&self, token: &str, project: &str) {
        let projects = &mut self.memory().projects;
        projects.insert(token.to_owned(), project.to_owned());
    }

    /// What was taken for a token, the oldest first.
    #[must_use]
    pub fn taken_for(&self, token: &str) -> Vec<Taken> {
        self.memory().taken.get(token).cloned().unwrap_or_default()
    }

    /// How many messages were taken.
    #[must_use]
    pub fn taken_count(&self) -> usize {
        self.memory().taken_count
    }

    /// How many requests came, of both kinds and whatever became of them.
    #[must_use]
    pub fn request_count(&self) -> u64 {
        self.memory().requests
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What there is to say about messages, which are taken unless they are refused.
    fn take(&self, messages: &[Value]) -> Response {
        let now_ms = self.clock.now_ms();
        let mut memory = self.memory();
        if let Err(refused) = memory.check(messages, now_ms) {
            return said::refusal(&refused);
        }
        memory.recent.push_back((now_ms, messages.len()));
        let tickets = messages.iter().map(|message| memory.ticket(message));
        said::data(&tickets.collect())
    }
}

impl Memory {
    /// Whether a request's messages can be taken now.
    fn check(&mut self, messages: &[Value], now_ms: i64) -> Result<(), rules::Refusal> {
        rules::check_messages(messages, &self.projects)?;
        while let Some((at, _)) = self.recent.front()
            && now_ms - at >= 1000
        {
            self.recent.pop_front();
        }
        let recent: usize = self.recent.iter().map(|(_, count)| count).sum();
        if recent + messages.len() > rules::RATE_PER_SECOND_MAX {
            return Err(rules::Refusal {
                status: StatusCode::TOO_MANY_REQUESTS,
                code: "TOO_MANY_REQUESTS",
                message: "more notifications a second than the project may send".to_owned(),
            });
        }
        if self.taken_count + messages.len() > TAKEN_MAX {
            return Err(rules::Refusal {
                status: StatusCode::SERVICE_UNAVAILABLE,
                code: "INTERNAL_SERVER_ERROR",
                message: format!("the stand-in remembers {TAKEN_MAX} messages and no more"),
            });
        }
        Ok(())
    }

    fn ticket(&mut self, message: &Value) -> Value {
        let token = message["to"].as_str().unwrap_or_default();
        if let Some(wrong) = rules::too_big(message) {
            return wrong;
        }
        let outcome = self.outcomes.get(token).cloned().unwrap_or_default();
        if let Outcome::TicketError(code) = &outcome {
            return said::error(code, token);
        }
        let id = uuid::Uuid::new_v4().to_string();
        let mut said = message.as_object().cloned().unwrap_or_default();
        said.remove("to");
        self.taken.entry(token.to_owned()).or_default().push(Taken {
            message: said,
            ticket_id: id.clone(),
        });
        self.taken_count += 1;
        self.receipts.insert(id.clone(), outcome);
        json!({"status": "ok", "id": id})
    }
}

async fn send(State(service): State<ExpoStandIn>, headers: HeaderMap, body: Bytes) -> Response {
    service.memory().requests += 1;
    let messages = match rules::read(&headers, &body, service.access_token.as_deref()) {
        Ok(Value::Array(messages)) => messages,
        Ok(_) => return said::refusal(&rules::invalid("there is no array of messages")),
        Err(refused) => return said::refusal(&refused),
    };
    let fault = {
        let mut memory = service.memory();
        let next = memory.faults.pop_front();
        next.or_else(|| memory.weather.as_mut()?(&messages))
    };
    match fault {
        None => service.take(&messages),
        Some(fault) => {
            if fault.takes {
                // What it would have said gets lost.
                let _ = service.take(&messages);
            }
            said::wrong(fault.then).await
        }
    }
}

async fn receipts(State(service): State<ExpoStandIn>, headers: HeaderMap, body: Bytes) -> Response {
    service.memory().requests += 1;
    let asked = match rules::read(&headers, &body, service.access_token.as_deref()) {
        Ok(asked) => asked,
        Err(refused) => return said::refusal(&refused),
    };
    let ids = match rules::receipt_ids(&asked) {
        Ok(ids) => ids,
        Err(refused) => return said::refusal(&refused),
    };
    let fault = service.memory().receipt_faults.pop_front();
    if let Some(fault) = fault {
        return said::wrong(fault.then).await;
    }
    let memory = service.memory();
    let receipts = ids.into_iter().filter_map(|id| {
        let receipt = match memory.receipts.get(id)? {
            Outcome::Delivered => json!({"status": "ok"}),
            Outcome::ReceiptError(code) => said::error(code, id),
            Outcome::TicketError(_) | Outcome::NoReceipt => return None,
        };
        Some((id.to_owned(), receipt))
    });
    said::data(&Value::Object(receipts.collect()))
}

impl std::fmt::Debug for ExpoStandIn {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ExpoStandIn")
            .field("taken", &self.taken_count())
            .finish_non_exhaustive()
    }
}
