//! An engine on a store, with a broker that writes down what is published.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use homeport_item::schema::TableSchema;
use homeport_item::{Item, KeyKind};
use homeport_store::{Scan, Store, StoreError};
use homeport_systems::messages::{Delivery, Intake as _, Message, Properties, Publish, Publisher};
use homeport_systems::push::{self, Push};
use homeport_systems::rules::{NewRule, RuleEngine, RuleEngineDeps, RuleName, RuleView};
use homeport_systems::schema::TableNames;
use homeport_systems::time::{EpochMillis, FutureLimit};
use serde_json::{Value, json};

use crate::support::{self, Fixture, NOW_MS};

pub(crate) const TELEMETRY: &str = "van-telemetry";
/// A table that is not Homeport's.
pub(crate) const OTHER: &str = "readings-by-someone-else";

pub(crate) struct World {
    pub(crate) engine: RuleEngine,
    pub(crate) fixture: Fixture,
    pub(crate) broker: Arc<Recorder>,
    pub(crate) push: Push,
}

/// Writes down what is published.
#[derive(Default)]
pub(crate) struct Recorder {
    published: Mutex<Vec<Message>>,
}

impl Recorder {
    pub(crate) fn take(&self) -> Vec<Message> {
        std::mem::take(&mut self.published.lock().expect("not poisoned"))
    }
}

#[async_trait]
impl Publish for Recorder {
    async fn publish(&self, message: Message) -> Result<(), StoreError> {
        self.published.lock().expect("not poisoned").push(message);
        Ok(())
    }
}

pub(crate) fn tables() -> Vec<TableSchema> {
    homeport_systems::schema::tables(&TableNames::default())
}

/// A world with the rules that ship with Homeport.
/// A topic whose notifications somebody receives.
pub(crate) const SNS_TOPIC: &str = "arn:aws:sns:eu-central-1:123456789012:low-battery";

pub(crate) async fn world() -> World {
    world_with(Vec::new()).await
}

pub(crate) async fn world_with(file_rules: Vec<NewRule>) -> World {
    let mut all = tables();
    all.push(TableSchema::new(OTHER, "id", KeyKind::S));
    let fixture = support::fixture(&all).await;
    World::on(fixture, file_rules).await
}

impl World {
    pub(crate) async fn on(fixture: Fixture, file_rules: Vec<NewRule>) -> Self {
        let store = Arc::clone(&fixture.store);
        let broker = Arc::new(Recorder::default());
        let engine = engine_on(&fixture, store, file_rules);
        engine.load().await.expect("rules");
        let push = push_on(&fixture);
        Self {
            engine,
            fixture,
            broker,
            push,
        }
    }

    /// What the next process finds.
    pub(crate) async fn restart(self, file_rules: Vec<NewRule>) -> Self {
        let Self {
            engine,
            fixture,
            broker,
            push,
        } = self;
        drop((engine, broker, push));
        Self::on(fixture.reopen().await, file_rules).await
    }

    /// A second process on the same store.
    pub(crate) async fn other_engine(&self) -> RuleEngine {
        let store = Arc::clone(&self.fixture.store);
        let engine = engine_on(&self.fixture, store, Vec::new());
        engine.load().await.expect("rules");
        engine
    }

    pub(crate) async fn create(&self, name: &str, document: Value) -> RuleView {
        let view = self.engine.create(new(name, document)).await;
        view.expect("a rule")
    }

    pub(crate) async fn send(&self, topic: &str, payload: &str) {
        let taken = self.engine.take(&message(topic, payload)).await;
        for republished in taken.expect("taken in") {
            let published = self.broker.publish(republished).await;
            published.expect("recorded");
        }
    }

    /// All items of a table in DynamoDB's JSON, in the order of that text.
    pub(crate) async fn items(&self, table: &str) -> Vec<Value> {
        let page = self.fixture.store.scan(Scan::new(table)).await;
        let mut items: Vec<_> = page
            .expect("a scan")
            .items
            .iter()
            .map(|item: &Item| serde_json::to_value(item).expect("JSON"))
            .collect();
        items.sort_by_key(Value::to_string);
        items
    }

    pub(crate) fn counts(&self, name: &str) -> homeport_systems::rules::RuleCounts {
        self.engine.rule(&rule_name(name)).expect("a rule").counts
    }

    /// The reasons of a rule's last failures, the newest first.
    pub(crate) fn reasons(&self, name: &str) -> Vec<String> {
        let failures = self.engine.failures(&rule_name(name)).expect("a rule");
        failures.into_iter().map(|failure| failure.reason).collect()
    }
}

pub(crate) fn engine_on(
    fixture: &Fixture,
    store: Arc<dyn Store>,
    file_rules: Vec<NewRule>,
) -> RuleEngine {
    let deps = RuleEngineDeps {
        store,
        clock: Arc::clone(&fixture.clock) as _,
        push: push_on(fixture),
        tables: tables(),
        telemetry_table: TELEMETRY.to_owned(),
        future_limit: FutureLimit::default(),
        sns_topics: std::collections::HashMap::from([(
            SNS_TOPIC.to_owned(),
            "https://hooks.example/sns".to_owned(),
        )]),
    };
    RuleEngine::new(deps, file_rules).expect("an engine")
}

fn push_on(fixture: &Fixture) -> Push {
    Push::new(
        Arc::clone(&fixture.store),
        Arc::clone(&fixture.clock) as _,
        push::Settings::default(),
    )
}

pub(crate) fn rule_name(name: &str) -> RuleName {
    name.parse().expect("a name")
}

pub(crate) fn new(name: &str, document: Value) -> NewRule {
    let new = json!({"ruleName": name, "topicRulePayload": document});
    serde_json::from_value(new).expect("a rule")
}

pub(crate) fn put_item(sql: &str, table: &str) -> Value {
    json!({"sql": sql, "actions": [{"dynamoDBv2": {"putItem": {"tableName": table}}}]})
}

pub(crate) fn message(topic: &str, payload: &str) -> Message {
    Message {
        topic: topic.to_owned(),
        payload: Bytes::copy_from_slice(payload.as_bytes()),
        delivery: Delivery::AtLeastOnce,
        retain: false,
        publisher: Publisher {
            client_id: Some("client-1".to_owned()),
            principal: Some("key-1".to_owned()),
        },
        received_at: EpochMillis(NOW_MS),
        properties: Properties::default(),
        hops: 0,
    }
}
