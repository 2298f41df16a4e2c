//! A real broker on a real engine, with an intake that writes messages to a table and can wait or fail on
//! demand.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use homeport_engine::{Engine, Options};
use homeport_item::schema::TableSchema;
use homeport_item::{Item, KeyKind, Value};
use homeport_server::{
    AdminToken, Broker, BrokerParts, Connections, KeyVerifier, MqttSettings, RateLimit,
    RateLimiter, serve_mqtt,
};
use homeport_store::{Clock, ManualClock, Put, Scan, Store, StoreError, WriteError};
use homeport_systems::api_keys::{ApiKeys, KeyId, KeyPermission, NewApiKey, Pepper};
use homeport_systems::messages::{Intake, IntakeError, Message};
use homeport_systems::schema::TableNames;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::held_store::HeldStore;

pub(crate) const ADMIN: &str = "admin-token-of-the-tests";
/// 2027-01-15T08:00:00Z
pub(crate) const NOW_MS: i64 = 1_800_000_000_000;
/// The limit of every wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

const TAKEN: &str = "taken";
/// The payload that the intake refuses.
pub(crate) const REFUSED: &[u8] = b"refuse this";

pub(crate) struct World {
    pub(crate) address: SocketAddr,
    pub(crate) broker: Broker,
    pub(crate) api_keys: Arc<ApiKeys>,
    /// The store of the API keys.
    pub(crate) key_store: Arc<HeldStore>,
    pub(crate) intake: Arc<Keeper>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) engine: Engine,
    settings: MqttSettings,
    stop: watch::Sender<bool>,
    running: Vec<JoinHandle<()>>,
    directory: tempfile::TempDir,
}

/// An intake that writes every message to a table.
pub(crate) struct Keeper {
    store: Arc<dyn Store>,
    gate: watch::Sender<bool>,
    waiting: watch::Sender<usize>,
    /// Messages that were republished at least as often fail.
    fails_from: AtomicU8,
    republishes: AtomicBool,
    next: AtomicI64,
}

#[async_trait]
impl Intake for Keeper {
    async fn take(&self, message: &Message) -> Result<Vec<Message>, IntakeError> {
        // Numbered in the order in which processing starts.
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        self.waiting.send_modify(|waiting| *waiting += 1);
        let mut gate = self.gate.subscribe();
        let _ = gate.wait_for(|is_open| *is_open).await;
        self.waiting.send_modify(|waiting| *waiting -= 1);
        if message.hops >= self.fails_from.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("told to fail".to_owned()).into());
        }
        if &message.payload[..] == REFUSED {
            return Err(IntakeError::Refused("told to refuse".to_owned()));
        }
        let item = Item::new()
            .with("topic", message.topic.as_str())
            .with("number", number)
            .with("payload", Value::B(message.payload.to_vec()));
        match self.store.put(Put::new(TAKEN, item)).await {
            Ok(_) | Err(WriteError::ConditionFailed { .. }) => Ok(self.republished(message)),
            Err(WriteError::Store(error)) => Err(error.into()),
        }
    }
}

impl Keeper {
    /// Holds messages back, or lets them continue.
    pub(crate) fn open_gate(&self, is_open: bool) {
        self.gate.send_replace(is_open);
    }

    pub(crate) fn fail(&self, fails: bool) {
        self.fail_from(if fails { 0 } else { u8::MAX });
    }

    /// Fails messages that were republished at least `hops` times.
    pub(crate) fn fail_from(&self, hops: u8) {
        self.fails_from.store(hops, Ordering::SeqCst);
    }

    /// Republishes two messages for each message, and two for each of these.
    pub(crate) fn republish(&self) {
        self.republishes.store(true, Ordering::SeqCst);
    }

    fn republished(&self, message: &Message) -> Vec<Message> {
        if !self.republishes.load(Ordering::SeqCst) || message.hops == 2 {
            return Vec::new();
        }
        let part = |number: &[u8]| Message {
            payload: [&message.payload[..], b".", number].concat().into(),
            hops: message.hops + 1,
            ..message.clone()
        };
        vec![part(b"1"), part(b"2")]
    }

    /// Waits until `count` messages are held back.
    pub(crate) async fn until_waiting(&self, count: usize) {
        let mut waiting = self.waiting.subscribe();
        let reached = waiting.wait_for(|waiting| *waiting == count);
        let outcome = tokio::time::timeout(PATIENCE, reached).await;
        outcome.expect("they come").expect("it is there");
    }
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::start_with(MqttSettings::default()).await
    }

    pub(crate) async fn start_with(settings: MqttSettings) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let clock = Arc::new(ManualClock::at_ms(NOW_MS));
        let limit = RateLimit::default();
        Self::open(directory, clock, settings, limit, Connections::default()).await
    }

    /// A world that shares connection limits with other ports.
    pub(crate) async fn start_sharing(connections: Connections) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let clock = Arc::new(ManualClock::at_ms(NOW_MS));
        let settings = MqttSettings::default();
        let limit = RateLimit::default();
        Self::open(directory, clock, settings, limit, connections).await
    }

    /// A world with a rate limit of keys.
    pub(crate) async fn start_limited(limit: RateLimit) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let clock = Arc::new(ManualClock::at_ms(NOW_MS));
        let settings = MqttSettings::default();
        Self::open(directory, clock, settings, limit, Connections::default()).await
    }

    async fn open(
        directory: tempfile::TempDir,
        clock: Arc<ManualClock>,
        settings: MqttSettings,
        limit: RateLimit,
        connections: Connections,
    ) -> Self {
        let options = Options {
            clock: Arc::clone(&clock) as _,
            background_sweep: false,
            ..Options::default()
        };
        let engine = Engine::open(directory.path(), options).expect("opens");
        let mut tables = homeport_systems::schema::tables(&TableNames::default());
        tables.push(TableSchema::new(TAKEN, "topic", KeyKind::S).with_sort("number", KeyKind::N));
        engine.ensure_tables(&tables).await.expect("tables");
        let store: Arc<dyn Store> = Arc::new(engine.clone());
        let time: Arc<dyn Clock> = Arc::clone(&clock) as _;
        let pepper = Pepper::new("pepper".to_owned());
        let key_store = Arc::new(HeldStore::new(Arc::clone(&store)));
        let api_keys = ApiKeys::new(Arc::clone(&key_store) as _, Arc::clone(&time), pepper);
        let api_keys = Arc::new(api_keys);
        let intake = Arc::new(Keeper {
            store: Arc::clone(&store),
            gate: watch::Sender::new(true),
            waiting: watch::Sender::new(0),
            fails_from: AtomicU8::new(u8::MAX),
            republishes: AtomicBool::new(false),
            next: AtomicI64::new(0),
        });
        let broker = Broker::start(BrokerParts {
            settings: settings.clone(),
            store,
            clock: time,
            removal_clock: engine.removal_clock(),
            intake: Arc::clone(&intake) as _,
            api_keys: Arc::clone(&api_keys),
            key_verifier: Arc::new(KeyVerifier::new(
                Arc::clone(&api_keys),
                Arc::clone(&clock) as _,
            )),
            admin_token: AdminToken::new(ADMIN, Arc::clone(&clock) as _),
            rate_limiter: Arc::new(RateLimiter::new(limit, Arc::clone(&clock) as _)),
        });
        let broker = broker.await.expect("a broker");
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = watch::channel(false);
        let until = |mut stopped: watch::Receiver<bool>| async move {
            let _ = stopped.wait_for(|is_over| *is_over).await;
        };
        let running = vec![
            tokio::spawn(serve_mqtt(
                listener,
                None,
                broker.clone(),
                connections,
                until(stopped.clone()),
            )),
            tokio::spawn(broker.clone().run_until(until(stopped))),
        ];
        Self {
            address,
            broker,
            api_keys,
            key_store,
            intake,
            clock,
            engine,
            settings,
            stop,
            running,
            directory,
        }
    }

    /// Restarts the server on the same data.
    pub(crate) async fn restart(self) -> Self {
        self.stop.send_replace(true);
        for running in self.running {
            running.await.expect("it ends well");
        }
        drop((self.broker, self.api_keys, self.key_store));
        drop((self.intake, self.engine));
        let limit = RateLimit::default();
        let connections = Connections::default();
        Self::open(
            self.directory,
            self.clock,
            self.settings,
            limit,
            connections,
        )
        .await
    }

    /// Stops the server without waiting for its end.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Creates a key for these things.
    pub(crate) async fn key<const N: usize>(&self, things: [&str; N]) -> String {
        self.key_of("telemetry", things).await.1
    }

    pub(crate) async fn key_of<const N: usize>(
        &self,
        system: &str,
        scopes: [&str; N],
    ) -> (KeyId, String) {
        let permissions = match (system, N) {
            ("telemetry", 0) => [KeyPermission::SendCommands, KeyPermission::SubscribeFleet].into(),
            _ => BTreeSet::new(),
        };
        let new = NewApiKey {
            system: Some(system.to_owned()),
            all: N == 0,
            permissions,
            scopes: scopes.map(str::to_owned).into_iter().collect(),
            ..NewApiKey::default()
        };
        let (key, raw) = self.api_keys.create(new).await.expect("a key");
        (key.key_id, raw.reveal().to_owned())
    }

    /// The topics and payloads that the intake has stored, in order.
    pub(crate) async fn taken(&self) -> Vec<(String, String)> {
        let page = self.engine.scan(Scan::new(TAKEN)).await.expect("a page");
        let mut taken: Vec<_> = page
            .items
            .iter()
            .map(|item| {
                let number = item.get("number").and_then(|n| n.as_number()?.to_i64());
                let topic = item.get("topic").and_then(Value::as_str).expect("a topic");
                let Some(Value::B(payload)) = item.get("payload") else {
                    panic!("a payload");
                };
                let payload = String::from_utf8_lossy(payload).into_owned();
                (number, (topic.to_owned(), payload))
            })
            .collect();
        taken.sort();
        taken.into_iter().map(|(_, message)| message).collect()
    }

    /// The number of items in a table.
    pub(crate) async fn count(&self, table: &str) -> usize {
        let page = self.engine.scan(Scan::new(table)).await;
        page.expect("a page").count
    }
}

/// Waits until a condition holds.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let mut look = tokio::time::interval(Duration::from_millis(5));
    let waited = async {
        while !holds().await {
            look.tick().await;
        }
    };
    let outcome = tokio::time::timeout(PATIENCE, waited).await;
    assert!(outcome.is_ok(), "it never came to this: {what}");
}
