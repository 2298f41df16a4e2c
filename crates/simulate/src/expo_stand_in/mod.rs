//! A strict stand-in for Expo's push service, for `homeport simulate` and for tests. It rejects what Expo rejects, fails on
//! demand, and remembers the messages that it accepted.
//!
//! It is stricter than Expo on purpose: a body must be a gzipped array, and one malformed token fails the whole request.

mod answers;
mod rules;

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

/// The paths of Expo's push service.
const SEND: &str = "/--/api/v2/push/send";
const RECEIPTS: &str = "/--/api/v2/push/getReceipts";
/// Maximum size of a body, compressed and decompressed.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Accepted messages to remember; further ones are rejected.
const ACCEPTED_MAX: usize = 10_000_000;
/// Maximum number of queued faults.
const FAULTS_MAX: usize = 10_000;

/// A fault that replaces the response to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Whether the messages are accepted nevertheless.
    pub accepts: bool,
    pub kind: FaultKind,
}

/// The response of a request that fails on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// This status, with an optional Retry-After in seconds.
    Status(u16, Option<u64>),
    /// A body that is not Expo's.
    InvalidBody,
    /// A closed connection.
    Disconnect,
    /// No response at all.
    NoResponse,
}

/// The outcome of messages to a token.
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

/// A message that was accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct AcceptedMessage {
    /// The message without its token.
    pub message: Map<String, Value>,
    pub ticket_id: String,
}

/// Chooses a fault for a request's messages.
type FaultPolicy = Box<dyn FnMut(&[Value]) -> Option<Fault> + Send>;

/// The stand-in service. Clones share their state.
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
    fault_policy: Option<FaultPolicy>,
    outcomes: HashMap<String, Outcome>,
    projects: HashMap<String, String>,
    accepted: HashMap<String, Vec<AcceptedMessage>>,
    accepted_count: usize,
    receipts: HashMap<String, Outcome>,
    /// Time and number of messages of requests within the last second.
    recent: VecDeque<(i64, usize)>,
    requests: u64,
}

impl ExpoStandIn {
    /// A service that accepts only this access token, or any request without one.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, access_token: Option<String>) -> Self {
        Self {
            clock,
            access_token,
            memory: Arc::default(),
        }
    }

    /// Serves until `stop` completes.
    ///
    /// # Errors
    /// If the listener fails.
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
        // Dropped, not drained: a request without a response would never end.
        tokio::select! {
            served = async { axum::serve(listener, router).await } => served,
            () = stop => Ok(()),
        }
    }

    /// Fails the next send request. Faults queue up.
    pub fn fail_next(&self, fault: Fault) {
        let mut memory = self.memory();
        if memory.faults.len() < FAULTS_MAX {
            memory.faults.push_back(fault);
        }
    }

    /// Fails the next receipts request. Faults queue up.
    pub fn fail_next_receipts(&self, fault: Fault) {
        let mut memory = self.memory();
        if memory.receipt_faults.len() < FAULTS_MAX {
            memory.receipt_faults.push_back(fault);
        }
    }

    /// Lets `policy` choose a fault for each send request. It sees the messages as sent.
    pub fn set_fault_policy(&self, policy: impl FnMut(&[Value]) -> Option<Fault> + Send + 'static) {
        self.memory().fault_policy = Some(Box::new(policy));
    }

    /// Sets the outcome of future messages to this token.
    pub fn set_outcome(&self, token: &str, outcome: Outcome) {
        self.memory().outcomes.insert(token.to_owned(), outcome);
    }

    /// Assigns the token to a project. Tokens without one share a default project.
    pub fn set_project(&self, token: &str, project: &str) {
        let projects = &mut self.memory().projects;
        projects.insert(token.to_owned(), project.to_owned());
    }

    /// The messages accepted for a token, oldest first.
    #[must_use]
    pub fn accepted_for(&self, token: &str) -> Vec<AcceptedMessage> {
        self.memory()
            .accepted
            .get(token)
            .cloned()
            .unwrap_or_default()
    }

    /// Number of accepted messages.
    #[must_use]
    pub fn accepted_count(&self) -> usize {
        self.memory().accepted_count
    }

    /// Number of requests of both kinds, including failed ones.
    #[must_use]
    pub fn request_count(&self) -> u64 {
        self.memory().requests
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts messages unless they are invalid, and builds the response.
    fn accept(&self, messages: &[Value]) -> Response {
        let now_ms = self.clock.now_ms();
        let mut memory = self.memory();
        if let Err(refused) = memory.check(messages, now_ms) {
            return answers::refusal(&refused);
        }
        memory.recent.push_back((now_ms, messages.len()));
        let tickets = messages.iter().map(|message| memory.ticket(message));
        answers::data(&tickets.collect())
    }
}

impl Memory {
    /// Whether a request's messages can be accepted now.
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
                message: "the project's rate limit is exceeded".to_owned(),
            });
        }
        if self.accepted_count + messages.len() > ACCEPTED_MAX {
            return Err(rules::Refusal {
                status: StatusCode::SERVICE_UNAVAILABLE,
                code: "INTERNAL_SERVER_ERROR",
                message: format!("the stand-in has reached its limit of {ACCEPTED_MAX} messages"),
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
            return answers::error(code, token);
        }
        let id = uuid::Uuid::new_v4().to_string();
        let mut content = message.as_object().cloned().unwrap_or_default();
        content.remove("to");
        self.accepted
            .entry(token.to_owned())
            .or_default()
            .push(AcceptedMessage {
                message: content,
                ticket_id: id.clone(),
            });
        self.accepted_count += 1;
        self.receipts.insert(id.clone(), outcome);
        json!({"status": "ok", "id": id})
    }
}

async fn send(State(service): State<ExpoStandIn>, headers: HeaderMap, body: Bytes) -> Response {
    service.memory().requests += 1;
    let messages = match rules::read(&headers, &body, service.access_token.as_deref()) {
        Ok(Value::Array(messages)) => messages,
        Ok(_) => return answers::refusal(&rules::invalid("the body must be an array of messages")),
        Err(refused) => return answers::refusal(&refused),
    };
    let fault = {
        let mut memory = service.memory();
        let next = memory.faults.pop_front();
        next.or_else(|| memory.fault_policy.as_mut()?(&messages))
    };
    match fault {
        None => service.accept(&messages),
        Some(fault) => {
            if fault.accepts {
                // Its response is lost.
                let _ = service.accept(&messages);
            }
            answers::fault(fault.kind).await
        }
    }
}

async fn receipts(State(service): State<ExpoStandIn>, headers: HeaderMap, body: Bytes) -> Response {
    service.memory().requests += 1;
    let asked = match rules::read(&headers, &body, service.access_token.as_deref()) {
        Ok(asked) => asked,
        Err(refused) => return answers::refusal(&refused),
    };
    let ids = match rules::receipt_ids(&asked) {
        Ok(ids) => ids,
        Err(refused) => return answers::refusal(&refused),
    };
    let fault = service.memory().receipt_faults.pop_front();
    if let Some(fault) = fault {
        return answers::fault(fault.kind).await;
    }
    let memory = service.memory();
    let receipts = ids.into_iter().filter_map(|id| {
        let receipt = match memory.receipts.get(id)? {
            Outcome::Delivered => json!({"status": "ok"}),
            Outcome::ReceiptError(code) => answers::error(code, id),
            Outcome::TicketError(_) | Outcome::NoReceipt => return None,
        };
        Some((id.to_owned(), receipt))
    });
    answers::data(&Value::Object(receipts.collect()))
}

impl std::fmt::Debug for ExpoStandIn {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ExpoStandIn")
            .field("accepted", &self.accepted_count())
            .finish_non_exhaustive()
    }
}
