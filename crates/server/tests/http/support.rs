//! A real server with a real engine on its own port, and a client for it.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use homeport_engine::{Engine, Options};
use homeport_server::{
    AppDeps, AppSettings, AppState, Broker, ClockState, CommitTimes, ConnectionLimits, Connections,
    ForwardedHeader, Gauges, Health, Limits, MqttSettings, RateLimit, SESSION_SECS_DEFAULT,
    Storage, StoreClock, StoredTable, TrustedProxies, UserAlgorithm, UserKeys, UserTokenSettings,
};
use homeport_simulate::expo_stand_in::ExpoStandIn;
use homeport_store::{Clock as _, ManualClock, StoreError};
use homeport_systems::alerts::{self, Alerts};
use homeport_systems::api_keys::{ApiKeys, KeyPermission, NewApiKey, Pepper};
use homeport_systems::fleet::{Expectations, SYSTEMS, System};
use homeport_systems::messages::{Intake as _, Message};
use homeport_systems::people::People;
use homeport_systems::rules::RuleEngine;
use homeport_systems::schema::TableNames;
use homeport_systems::time::{EpochMillis, FutureLimit};
use homeport_systems::{push, records, sensors};
use serde_json::Value;

pub(crate) const ADMIN: &str = "admin-token-of-the-tests";
/// A page of this origin may use MQTT over WebSockets.
pub(crate) const ALLOWED_ORIGIN: &str = "https://app.example.com";
/// The secret of user tokens.
pub(crate) const USER_SECRET: &str = "a secret of users that only the tests know";
/// 2027-01-15T08:00:00Z
pub(crate) const NOW_MS: i64 = 1_800_000_000_000;

pub(crate) struct Server {
    address: String,
    pub(crate) engine: Engine,
    pub(crate) api_keys: Arc<ApiKeys>,
    pub(crate) alerts: Alerts,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) people: People,
    rules: RuleEngine,
    broker: Broker,
    _directory: tempfile::TempDir,
}

/// Serves an Expo stand-in until the test ends; returns its URL.
pub(crate) async fn serve_stand_in(stand_in: &ExpoStandIn) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(stand_in.clone().serve(listener, std::future::pending()));
    format!("http://{address}")
}

/// The client counts as a reverse proxy, so that requests can come from many addresses.
fn proxies() -> TrustedProxies {
    TrustedProxies {
        addresses: "127.0.0.1".parse().expect("an address"),
        header: ForwardedHeader::XForwardedFor,
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

/// No problem other than missing tables.
struct Quiet(Engine);

#[async_trait]
impl Health for Quiet {
    fn problem(&self) -> Option<String> {
        None
    }

    async fn missing_tables(&self) -> Vec<String> {
        let tables = homeport_systems::schema::tables(&TableNames::default());
        let names = tables.into_iter().map(|table| table.name);
        names.filter(|name| self.0.table(name).is_err()).collect()
    }
}

/// The engine's tables, counted on every call.
struct Tables(Engine);

#[async_trait]
impl Storage for Tables {
    async fn tables(&self) -> Result<Vec<StoredTable>, StoreError> {
        let mut tables = Vec::new();
        for name in self.0.table_names() {
            tables.extend(self.table(&name).await?);
        }
        Ok(tables)
    }

    async fn table(&self, name: &str) -> Result<Option<StoredTable>, StoreError> {
        let Ok(described) = self.0.describe_table(name) else {
            return Ok(None);
        };
        let extent = self.0.table_size(name).await?.table;
        Ok(Some(StoredTable {
            schema: described.schema,
            status: "ACTIVE",
            indexes_filling: Vec::new(),
            items: Some(extent.items),
            bytes: Some(extent.bytes),
        }))
    }

    fn disk_bytes(&self) -> Option<u64> {
        Some(self.0.metrics().disk_bytes)
    }

    fn commit_times(&self) -> Option<CommitTimes> {
        let metrics = self.0.metrics();
        Some(CommitTimes {
            count: metrics.commits,
            mean_ms: 0.0,
            p50_ms: metrics.commit_p50_micros as f64 / 1000.0,
            p99_ms: metrics.commit_p99_micros as f64 / 1000.0,
        })
    }
}

#[async_trait]
impl StoreClock for Tables {
    fn state(&self) -> ClockState {
        clock_state(self.0.clock_status())
    }

    async fn confirm(&self) -> Result<ClockState, StoreError> {
        Ok(clock_state(self.0.confirm_time().await?))
    }
}

fn clock_state(status: homeport_engine::ClockStatus) -> ClockState {
    ClockState {
        wall_ms: status.wall_ms,
        commit_ms: status.commit_ms,
        is_confirmed: !status.is_suspended,
    }
}

impl Gauges for Quiet {
    fn read(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

fn user_secret() -> UserKeys {
    UserKeys::Secret(USER_SECRET.to_owned())
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::start_with(RateLimit::default()).await
    }

    pub(crate) async fn start_with(limit: RateLimit) -> Self {
        let users = UserTokenSettings::new(UserAlgorithm::Hs256, user_secret());
        Self::start_with_users(limit, users).await
    }

    pub(crate) async fn start_with_users(limit: RateLimit, users: UserTokenSettings) -> Self {
        Self::start_on(SYSTEMS.to_vec(), limit, users).await
    }

    pub(crate) async fn start_with_systems(systems: Vec<&'static System>) -> Self {
        let users = UserTokenSettings::new(UserAlgorithm::Hs256, user_secret());
        Self::start_on(systems, RateLimit::default(), users).await
    }

    async fn start_on(
        systems: Vec<&'static System>,
        limit: RateLimit,
        users: UserTokenSettings,
    ) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let clock = Arc::new(ManualClock::at_ms(NOW_MS));
        let options = Options {
            clock: Arc::clone(&clock) as _,
            background_sweep: false,
            ..Options::default()
        };
        let engine = Engine::open(directory.path(), options).expect("opens");
        let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
        let deps = AppDeps {
            store: Arc::new(engine.clone()),
            systems,
            feed: Some(Arc::new(engine.clone())),
            clock: Arc::clone(&clock) as _,
            removal_clock: engine.removal_clock(),
            storage: Arc::new(Tables(engine.clone())),
            health: Arc::new(Quiet(engine.clone())),
            store_clock: Arc::new(Tables(engine.clone())),
            gauges: Arc::new(Quiet(engine.clone())),
            metrics: recorder.handle(),
        };
        let settings = AppSettings {
            tables: TableNames::default(),
            pepper: Pepper::new("pepper".to_owned()),
            admin_token: ADMIN.to_owned(),
            rate_limit: limit,
            future_limit: FutureLimit::default(),
            allowed_origins: ALLOWED_ORIGIN.parse().expect("an origin"),
            user_tokens: users,
            session_secs: SESSION_SECS_DEFAULT,
            sensors: sensors::Settings::default(),
            push: push::Settings::default(),
            records: records::Settings::default(),
            alerts: alerts::Settings {
                silence_grace_secs: 0,
                has_email: true,
                ..alerts::Settings::default()
            },
            mqtt: MqttSettings::default(),
            expectations: Expectations::default(),
            rules: Vec::new(),
            sns_topics: HashMap::new(),
        };
        let state = AppState::build(deps, settings).await.expect("a server");
        let api_keys = Arc::clone(&state.api_keys);
        let (alerts, rules) = (state.alerts.clone(), state.rules.clone());
        let broker = state.broker.clone();
        let people = state.people.clone();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let limits = Limits {
            connections_max: 256,
            connections: Connections::new(ConnectionLimits::default(), proxies()),
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(120),
        };
        let router = homeport_server::router(state);
        let serving =
            homeport_server::serve(listener, None, limits, router, std::future::pending());
        tokio::spawn(serving);
        Self {
            address,
            engine,
            api_keys,
            alerts,
            clock,
            people,
            rules,
            broker,
            _directory: directory,
        }
    }

    /// The time of its clock.
    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// Host and port.
    pub(crate) fn host(&self) -> &str {
        self.address.trim_start_matches("http://")
    }

    /// Serves MQTT too, until the test ends; returns the address.
    pub(crate) async fn serve_mqtt(&self) -> SocketAddr {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port");
        let address = listener.local_addr().expect("an address");
        let broker = self.broker.clone();
        let connections = Connections::default();
        let forever = std::future::pending();
        tokio::spawn(homeport_server::serve_mqtt(
            listener,
            None,
            broker.clone(),
            connections,
            forever,
        ));
        tokio::spawn(broker.run_until(std::future::pending()));
        address
    }

    /// Passes a message to the rules, as the broker does.
    pub(crate) async fn take(&self, topic: &str, payload: &str) {
        let message = Message {
            topic: topic.to_owned(),
            payload: bytes::Bytes::copy_from_slice(payload.as_bytes()),
            delivery: homeport_systems::messages::Delivery::AtLeastOnce,
            retain: false,
            publisher: homeport_systems::messages::Publisher::default(),
            received_at: EpochMillis(self.clock.now_ms()),
            properties: homeport_systems::messages::Properties::default(),
            hops: 0,
        };
        self.rules.take(&message).await.expect("taken in");
    }

    pub(crate) async fn key(&self) -> String {
        self.key_for([]).await
    }

    pub(crate) async fn key_for<const N: usize>(&self, scopes: [&str; N]) -> String {
        self.key_of("sensors", scopes).await
    }

    /// Creates an API key with scopes.
    pub(crate) async fn key_of<const N: usize>(&self, system: &str, scopes: [&str; N]) -> String {
        let new = NewApiKey {
            system: Some(system.to_owned()),
            all: N == 0,
            scopes: scopes
                .map(str::to_owned)
                .into_iter()
                .collect::<BTreeSet<_>>(),
            ..NewApiKey::default()
        };
        let (_, raw) = self.api_keys.create(new).await.expect("a key");
        raw.reveal().to_owned()
    }

    /// Creates an API key of telemetry that may send commands.
    pub(crate) async fn command_key(&self) -> String {
        self.permitted_key("telemetry", KeyPermission::SendCommands)
            .await
    }

    /// Creates an API key of a whole system with a permission.
    pub(crate) async fn permitted_key(&self, system: &str, permission: KeyPermission) -> String {
        let new = NewApiKey {
            permissions: [permission].into(),
            ..NewApiKey::for_all_of(system)
        };
        let (_, raw) = self.api_keys.create(new).await.expect("a key");
        raw.reveal().to_owned()
    }

    /// Sends a request.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<String>,
    ) -> Answer {
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.unwrap_or_default()).expect("a request");
        tokio::task::spawn_blocking(move || {
            let agent: ureq::Agent = ureq::Agent::config_builder()
                .http_status_as_error(false)
                .allow_non_standard_methods(true)
                .build()
                .into();
            let mut response = agent.run(request).expect("an answer");
            let text = response.body_mut().read_to_string().expect("a body");
            let headers = response.headers().iter();
            Answer {
                status: response.status().as_u16(),
                headers: headers
                    .map(|(name, value)| {
                        let value = value.to_str().expect("text");
                        (name.to_string(), value.to_owned())
                    })
                    .collect(),
                body: serde_json::from_str(&text).unwrap_or(Value::String(text)),
            }
        })
        .await
        .expect("no panic")
    }

    pub(crate) async fn as_device(
        &self,
        key: &str,
        method: &str,
        path: &str,
        body: Value,
    ) -> Answer {
        let body = (!body.is_null()).then(|| body.to_string());
        self.send(method, path, &[("x-api-key", key)], body).await
    }

    pub(crate) async fn as_admin(&self, method: &str, path: &str, body: Value) -> Answer {
        let token = format!("Bearer {ADMIN}");
        let body = (!body.is_null()).then(|| body.to_string());
        self.send(method, path, &[("authorization", &token)], body)
            .await
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The status and code of a problem; asserts that the body is one.
    pub(crate) fn problem(&self) -> (u16, &str) {
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json"),
            "{self:?}"
        );
        assert_eq!(self.body["status"], self.status);
        assert_eq!(
            self.body["request_id"].as_str(),
            self.header("x-request-id")
        );
        (self.status, self.body["code"].as_str().expect("a code"))
    }
}
