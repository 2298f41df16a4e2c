//! A store with telemetry in it, alerts on it, and targets that write down what they get.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use homeport_item::{Item, Number};
use homeport_store::{
    Change, ChangeFeed, ChangePage, Clock as _, ManualClock, Position, Put, StoreError,
};
use homeport_systems::alerts::{
    Alert, AlertFilter, AlertId, Alerts, Condition, Definition, DefinitionTerms, Deliver, Devices,
    Email, Parts, Settings, Severity, Side, StateFilter, Target, Threshold, Turn, WebhookCall,
    WebhookSecret, Worker,
};
use homeport_systems::fleet::{SYSTEMS, SourceDeps, Sources, SystemName};
use homeport_systems::messages::{Message, Publish};
use homeport_systems::outbox::{DeliveryState, SendError};
use homeport_systems::push::{self, Push};
use homeport_systems::schema::{TableNames, tables};

use crate::support::{self, Fixture, NOW_MS};

pub(crate) const TELEMETRY: &str = "van-telemetry";
pub(crate) const VAN: &str = "van-1";

pub(crate) struct World {
    pub(crate) fixture: Fixture,
    pub(crate) alerts: Alerts,
    pub(crate) outside: Arc<Outside>,
    pub(crate) topics: Arc<Topics>,
    settings: Settings,
}

/// The changes of a store, with the times that the tests' clock has. Stores other than the engine
/// stamp changes by a clock of their own, which the tests cannot set.
struct Restamped {
    feed: Arc<dyn ChangeFeed>,
    clock: Arc<ManualClock>,
}

/// Further apart than this, two clocks have nothing to do with each other.
const CLOCKS_APART_MS: i64 = 24 * 60 * 60 * 1000;

#[async_trait]
impl ChangeFeed for Restamped {
    async fn end(&self, table: &str) -> Result<Position, StoreError> {
        self.feed.end(table).await
    }

    async fn changes(
        &self,
        table: &str,
        from: &Position,
        limit: usize,
        wait: Duration,
    ) -> Result<ChangePage, StoreError> {
        let mut page = self.feed.changes(table, from, limit, wait).await?;
        let now_ms = self.clock.now_ms();
        for change in &mut page.changes {
            if (change.at_ms - now_ms).abs() > CLOCKS_APART_MS {
                change.at_ms = now_ms;
            }
        }
        Ok(page)
    }
}

fn feed(fixture: &Fixture) -> Arc<dyn ChangeFeed> {
    Arc::new(Restamped {
        feed: fixture.feed(),
        clock: Arc::clone(&fixture.clock),
    })
}

/// Targets outside: what they got, and what they answer next.
#[derive(Default)]
pub(crate) struct Outside {
    pub(crate) calls: Mutex<Vec<WebhookCall>>,
    pub(crate) emails: Mutex<Vec<Email>>,
    /// Answers in their order; then everything is taken. None is no answer at all.
    pub(crate) answers: Mutex<VecDeque<Option<SendError>>>,
}

/// Where messages are published.
#[derive(Default)]
pub(crate) struct Topics(pub(crate) Mutex<Vec<Message>>);

impl Outside {
    pub(crate) fn answer(&self, answers: impl IntoIterator<Item = Option<SendError>>) {
        self.answers.lock().expect("no panic").extend(answers);
    }

    /// The types of the bodies that webhooks got so far.
    pub(crate) fn told(&self) -> Vec<String> {
        let calls = self.calls.lock().expect("no panic");
        let types = calls.iter().map(|call| {
            let body: serde_json::Value = serde_json::from_str(&call.body).expect("JSON");
            body["type"].as_str().expect("a type").to_owned()
        });
        types.collect()
    }

    async fn next(&self) -> Result<(), SendError> {
        let next = self.answers.lock().expect("no panic").pop_front();
        match next {
            None => Ok(()),
            Some(Some(error)) => Err(error),
            Some(None) => std::future::pending().await,
        }
    }
}

#[async_trait]
impl Deliver for Outside {
    async fn webhook(&self, call: &WebhookCall) -> Result<(), SendError> {
        self.calls.lock().expect("no panic").push(call.clone());
        self.next().await
    }

    async fn email(&self, email: &Email) -> Result<(), SendError> {
        self.emails.lock().expect("no panic").push(email.clone());
        self.next().await
    }
}

#[async_trait]
impl Publish for Topics {
    async fn publish(&self, message: Message) -> Result<(), StoreError> {
        self.0.lock().expect("no panic").push(message);
        Ok(())
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(settings()).await
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        let all = tables(&TableNames::default());
        Self::on(support::fixture(&all).await, settings)
    }

    fn on(fixture: Fixture, settings: Settings) -> Self {
        let topics = Arc::<Topics>::default();
        let parts = parts(&fixture, &topics);
        Self {
            alerts: Alerts::new(parts, settings.clone()),
            fixture,
            outside: Arc::default(),
            topics,
            settings,
        }
    }

    /// What another process finds; targets are the same.
    pub(crate) async fn reopen(self) -> Self {
        let Self {
            fixture,
            alerts,
            outside,
            settings,
            ..
        } = self;
        drop(alerts);
        let mut world = Self::on(fixture.reopen().await, settings);
        world.outside = outside;
        world
    }

    pub(crate) fn advance_secs(&self, secs: i64) {
        self.fixture.clock.advance_ms(secs * 1000);
    }

    /// Stores telemetry of a van at seconds after the start.
    pub(crate) async fn volts(&self, van: &str, secs: i64, volts: &str) {
        let volts: Number = volts.parse().expect("a number");
        let item = Item::new()
            .with("thing_name", van)
            .with("timestamp", NOW_MS + secs * 1000)
            .with("message_type", "telemetry")
            .with("volts", volts);
        let put = Put::new(TELEMETRY, item);
        self.fixture.store.put(put).await.expect("stored");
    }

    /// Judges everything that was stored.
    pub(crate) async fn judge(&self, system: &'static str) {
        let reactions = self.alerts.reactions().expect("a feed");
        let reaction = self.alerts.reaction(&SystemName::new(system));
        let reaction = reaction.expect("a watched system");
        reactions.catch_up(&reaction).await.expect("caught up");
    }

    pub(crate) async fn judge_telemetry(&self) {
        self.judge("telemetry").await;
    }

    /// Stores telemetry as in [`Self::volts`] and judges it.
    pub(crate) async fn judged_volts(&self, van: &str, secs: i64, volts: &str) {
        self.volts(van, secs, volts).await;
        self.judge_telemetry().await;
    }

    /// All changes of telemetry behind a position.
    pub(crate) async fn changes(&self, from: &Position) -> Vec<Change> {
        let feed = feed(&self.fixture);
        let mut from = from.clone();
        let mut changes = Vec::new();
        loop {
            let page = feed.changes(TELEMETRY, &from, 100, Duration::ZERO).await;
            let page = page.expect("changes");
            if page.changes.is_empty() {
                return changes;
            }
            changes.extend(page.changes);
            from = page.next;
        }
    }

    /// Alerts of another process on the same store.
    pub(crate) fn another_process(&self) -> Alerts {
        Alerts::new(parts(&self.fixture, &self.topics), self.settings.clone())
    }

    pub(crate) fn push(&self) -> Push {
        parts(&self.fixture, &self.topics).push
    }

    /// Notifications that are not finished, by the count that bounds them.
    pub(crate) async fn alerts_waiting(&self) -> i64 {
        let key = Item::new()
            .with("alert_id", "counter")
            .with("notification", "counter");
        let get = homeport_store::Get::new("homeport-alert-outbox", key);
        let item = self.fixture.store.get(get).await.expect("read");
        let count = item.and_then(|item| item.get("count")?.as_number()?.to_i64());
        count.expect("a count")
    }

    pub(crate) fn worker(&self) -> Worker {
        Worker::new(self.alerts.clone(), Arc::clone(&self.outside) as _)
    }

    pub(crate) async fn turn(&self) -> Turn {
        self.worker().turn().await.expect("a turn")
    }

    pub(crate) async fn list(&self, state: StateFilter) -> Vec<Alert> {
        let filter = AlertFilter {
            state,
            ..AlertFilter::default()
        };
        let page = self.alerts.alerts(&filter, 100, None).await;
        page.expect("alerts").items
    }

    /// Open and cleared alerts.
    pub(crate) async fn counts(&self) -> (usize, usize) {
        let open = self.list(StateFilter::Open).await.len();
        let cleared = self.list(StateFilter::Cleared).await.len();
        assert_eq!(self.list(StateFilter::All).await.len(), open + cleared);
        (open, cleared)
    }

    pub(crate) async fn create(&self, terms: DefinitionTerms) -> Definition {
        self.alerts.create(terms).await.expect("a definition")
    }

    /// What became of the notifications of an alert.
    pub(crate) async fn fates(&self, id: &AlertId) -> Vec<(String, DeliveryState)> {
        let notifications = self.alerts.notifications(id).await;
        let notifications = notifications.expect("notifications").into_iter();
        notifications
            .map(|one| {
                let name = format!("{} {}", one.event.as_str(), one.target.kind());
                (name, one.delivery.state)
            })
            .collect()
    }
}

pub(crate) fn parts(fixture: &Fixture, topics: &Arc<Topics>) -> Parts {
    let (store, clock) = (&fixture.store, &fixture.clock);
    Parts {
        store: Arc::clone(store),
        clock: Arc::clone(clock) as _,
        feed: Some(feed(fixture)),
        push: Push::new(
            Arc::clone(store),
            Arc::clone(clock) as _,
            push::Settings::default(),
        ),
        sources: {
            let clock = Arc::clone(clock) as _;
            let deps = SourceDeps::for_reading(store, &clock, &TableNames::default());
            Sources::connect(&SYSTEMS, &deps)
        },
        publish: Arc::clone(topics) as _,
    }
}

pub(crate) fn settings() -> Settings {
    Settings {
        silence_grace_secs: 0,
        webhook_secret: Some(secret()),
        has_email: true,
        ..Settings::default()
    }
}

pub(crate) fn secret() -> WebhookSecret {
    let text = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned();
    text.try_into().expect("a secret")
}

pub(crate) fn webhook() -> Target {
    Target::Webhook {
        url: "https://example.com/hook".parse().expect("a URL"),
        secret: None,
    }
}

/// "Battery below 12.0 V, clear at 12.4 V", on all vans, told to a webhook.
pub(crate) fn low_battery() -> DefinitionTerms {
    terms(Condition::Threshold(Threshold {
        attribute: "volts".parse().expect("a path"),
        side: Side::Below,
        raise: "12.0".parse().expect("a number"),
        clear: "12.4".parse().expect("a number"),
        min_secs: 0,
        min_count: 1,
    }))
}

pub(crate) fn terms(condition: Condition) -> DefinitionTerms {
    DefinitionTerms {
        name: "Battery".parse().expect("a name"),
        is_enabled: true,
        severity: Severity::Warning,
        source: SystemName::new("telemetry"),
        filter: None,
        devices: Devices::All,
        condition,
        quiet: None,
        min_interval_secs: 0,
        targets: vec![webhook()],
    }
}
