//! Replay: runs a rule over stored telemetry and compares its writes with the stored items. Nothing is
//! written.
//!
//! The message is reconstructed from the stored item. The topic is `van/{thing}/{type}`, where the type
//! `alert` stands for the topic level `alerts`; the payload is the item without the attributes that
//! rules add (`thing_name`, `timestamp`, `message_type`, `ttl`); the time is `timestamp`. Client ids and
//! properties are lost.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use homeport_item::{Item, Map, Value};
use homeport_store::{Action, Get, StoreError};

use crate::cursor::Cursor;
use crate::messages::{Delivery, Message, Properties, Publisher};
use crate::rules::definitions::compiled;
use crate::rules::definitions::document::RuleDocument;
use crate::rules::definitions::name::RuleName;
use crate::rules::definitions::registry::Registry;
use crate::rules::definitions::rule::{Rule, Source};
use crate::rules::execution::plan::{Plan, Write};
use crate::rules::execution::stats::RuleStats;
use crate::rules::{RuleEngine, RuleError, schema};
use crate::telemetry::{self, HistoryRange, Order, Telemetry, TelemetryError, ThingName};
use crate::time::EpochMillis;

/// The topic level of the message type `alert`.
const ALERT: (&str, &str) = ("alert", "alerts");
/// Messages of a page.
pub const REPLAY_PAGE_MAX: usize = 100;

/// The telemetry that a rule runs over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayRange {
    pub thing: ThingName,
    pub from: Option<EpochMillis>,
    pub to: Option<EpochMillis>,
}

/// A replay, which reads telemetry page by page.
pub struct Replay {
    engine: RuleEngine,
    telemetry: Telemetry,
    registry: Arc<Registry>,
    range: ReplayRange,
    next: Option<Cursor>,
    is_done: bool,
}

/// The result of a rule for one message.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    pub at: EpochMillis,
    pub topic: String,
    pub would_write: Vec<WouldWrite>,
    /// Topics it would publish on, URLs it would post to, users it would notify.
    pub other_effects: Vec<String>,
    /// Failures.
    pub failures: Vec<String>,
}

/// Totals over the messages of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReplayTotals {
    pub messages: usize,
    /// Writes that change nothing.
    pub same: usize,
    pub different: usize,
    pub failures: usize,
}

impl ReplayTotals {
    pub fn add(&mut self, replayed: &Replayed) {
        let writes = &replayed.would_write;
        let same = writes
            .iter()
            .filter(|write| write.difference == Difference::Same)
            .count();
        self.messages += 1;
        self.same += same;
        self.different += writes.len() - same;
        self.failures += replayed.failures.len();
    }
}

impl Replayed {
    /// Whether its writes would change nothing.
    #[must_use]
    pub fn changes_nothing(&self) -> bool {
        let mut writes = self.would_write.iter();
        writes.all(|write| write.difference == Difference::Same)
            && self.other_effects.is_empty()
            && self.failures.is_empty()
    }
}

/// A write and its difference from the stored item.
#[derive(Debug, Clone, PartialEq)]
pub struct WouldWrite {
    pub table: String,
    pub key: Option<Item>,
    pub difference: Difference,
}

/// How a write differs from the stored item.
#[derive(Debug, Clone, PartialEq)]
pub enum Difference {
    /// The item does not exist.
    New(Item),
    Same,
    /// Changed attributes by name: the stored value and the new one.
    Changed(Vec<(String, Option<Value>, Option<Value>)>),
    /// The item would be deleted.
    Removed,
    /// The table is not Homeport's, so its keys are unknown.
    Unknown(Item),
}

impl RuleEngine {
    /// Starts a replay. A disabled rule runs too, so that it can be tested.
    ///
    /// # Errors
    /// When the rule is invalid.
    pub fn replay(
        &self,
        name: &RuleName,
        document: &RuleDocument,
        telemetry: Telemetry,
        range: ReplayRange,
    ) -> Result<Replay, RuleError> {
        compiled::compile(
            name,
            document,
            &self.inner.tables,
            Arc::new(RuleStats::unseen()),
        )?;
        let rule = Rule {
            name: name.clone(),
            document: Arc::new(RuleDocument {
                rule_disabled: false,
                ..document.clone()
            }),
            version: 0,
            created_at: self.now(),
            updated_at: self.now(),
            source: Source::Store,
        };
        let registry = Registry::new(vec![rule], &self.inner.tables, &Registry::default());
        Ok(Replay {
            engine: self.clone(),
            telemetry,
            registry: Arc::new(registry),
            range,
            next: None,
            is_done: false,
        })
    }
}

impl Replay {
    /// Continues after a page of the same replay.
    #[must_use]
    pub fn starting_at(mut self, cursor: Option<Cursor>) -> Self {
        self.next = cursor;
        self
    }

    /// The start of the next page; `None` at the end.
    #[must_use]
    pub fn cursor(&self) -> Option<&Cursor> {
        self.next.as_ref()
    }

    /// Reads at most `limit` messages and runs those that match the rule's topic; `None` at the end.
    ///
    /// # Errors
    /// When the cursor is of another replay, or the store fails.
    pub async fn page(&mut self, limit: usize) -> Result<Option<Vec<Replayed>>, TelemetryError> {
        if self.is_done {
            return Ok(None);
        }
        let range = HistoryRange {
            from: self.range.from,
            to: self.range.to,
            order: Order::OldestFirst,
        };
        let thing = &self.range.thing;
        let cursor = self.next.take();
        let history =
            self.telemetry
                .history(thing, None, range, limit.min(REPLAY_PAGE_MAX), cursor);
        let page = history.await?;
        self.is_done = page.next.is_none();
        self.next = page.next;
        let mut replayed = Vec::new();
        for item in &page.items {
            if let Some(message) = message_of(item) {
                replayed.extend(self.message(&message).await?);
            }
        }
        Ok(Some(replayed))
    }

    async fn message(&self, message: &Message) -> Result<Option<Replayed>, StoreError> {
        let mut rules = self.registry.matching(&message.topic);
        let Some(rule) = rules.next() else {
            return Ok(None);
        };
        let plan = self.engine.plan(&self.registry, message);
        let failures = rule.stats.take_failures().into_iter();
        let mut replayed = Replayed {
            at: message.received_at,
            topic: message.topic.clone(),
            would_write: Vec::new(),
            other_effects: effects(&plan),
            failures: failures.map(|failure| failure.reason).collect(),
        };
        for write in plan.writes {
            if write.request.table() == schema::REQUESTS {
                continue;
            }
            replayed.would_write.push(self.compare(write).await?);
        }
        Ok(Some(replayed))
    }

    async fn compare(&self, write: Write) -> Result<WouldWrite, StoreError> {
        let table = write.request.table().to_owned();
        let (item, is_whole) = match write.request {
            Action::Put(put) => (Some(put.item), true),
            Action::Update(update) => (Some(update.key), false),
            Action::Delete(_) | Action::Check(_) => (None, true),
        };
        let there = match &write.key {
            Some(key) => {
                let get = Get::new(table.as_str(), key.clone());
                Some(self.engine.inner.store.get(get).await?)
            }
            None => None,
        };
        let difference = match (item, there) {
            (Some(item), None) => Difference::Unknown(item),
            (Some(item), Some(None)) => Difference::New(item),
            (Some(item), Some(Some(there))) => difference(&there, &item, is_whole),
            (None, _) => Difference::Removed,
        };
        Ok(WouldWrite {
            table,
            key: write.key,
            difference,
        })
    }
}

fn difference(there: &Item, item: &Item, is_whole: bool) -> Difference {
    let mut names: BTreeSet<&str> = item.iter().map(|(name, _)| name).collect();
    if is_whole {
        names.extend(there.iter().map(|(name, _)| name));
    }
    let changed: Vec<_> = names
        .into_iter()
        .filter(|name| there.get(name) != item.get(name))
        .map(|name| {
            let (is, would_be) = (there.get(name), item.get(name));
            (name.to_owned(), is.cloned(), would_be.cloned())
        })
        .collect();
    if changed.is_empty() {
        Difference::Same
    } else {
        Difference::Changed(changed)
    }
}

/// The effects of a plan besides writes into tables.
fn effects(plan: &Plan) -> Vec<String> {
    let messages = plan.messages.iter();
    let messages = messages.map(|effect| format!("republish on {}", effect.what.topic));
    let requests = plan
        .writes
        .iter()
        .filter(|write| write.request.table() == schema::REQUESTS);
    let requests = requests.map(|write| format!("post to {}", write.by.resource));
    let notices = plan.notices.iter();
    let notices = notices.map(|effect| format!("notify {}", effect.what.user));
    messages.chain(requests).chain(notices).collect()
}

/// Reconstructs the message of an item.
fn message_of(item: &Item) -> Option<Message> {
    let thing = item.get(telemetry::schema::THING_NAME)?.as_str()?;
    let at = item
        .get(telemetry::schema::TIMESTAMP)?
        .as_number()?
        .to_i64()?;
    let message_type = item.get(telemetry::schema::MESSAGE_TYPE)?.as_str()?;
    let level = if message_type == ALERT.0 {
        ALERT.1
    } else {
        message_type
    };
    let added = [
        telemetry::schema::THING_NAME,
        telemetry::schema::TIMESTAMP,
        telemetry::schema::MESSAGE_TYPE,
        telemetry::schema::TTL,
    ];
    let payload = item.iter().filter(|(name, _)| !added.contains(name));
    let payload: Map = payload
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect();
    Some(Message {
        topic: format!("{}/{thing}/{level}", telemetry::schema::TOPIC_ROOT),
        payload: Bytes::from(crate::plain_json::object(&payload)),
        delivery: Delivery::AtLeastOnce,
        retain: false,
        publisher: Publisher::default(),
        received_at: EpochMillis(at),
        properties: Properties::default(),
        hops: 0,
    })
}

impl std::fmt::Debug for Replay {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Replay")
            .field("range", &self.range)
            .finish_non_exhaustive()
    }
}
