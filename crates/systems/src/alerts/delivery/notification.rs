//! A notification about an alert to one target, and its stored form.

use homeport_item::expression::Path;
use homeport_item::{Item, Value};
use homeport_store::Put;

use crate::alerts::definitions::definition::Target;
use crate::alerts::types::{AlertId, DefinitionId};
use crate::alerts::{AlertsError, schema};
use crate::outbox::{Delivery, Entry};
use crate::time::{EpochMillis, UtcMillis};

/// How long the result of a test is kept: a week.
const TEST_RETENTION_SECS: i64 = 7 * 24 * 60 * 60;

/// The event that a notification reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Raised,
    Cleared,
    /// A snooze ended, and the alert is still open.
    SnoozeEnded,
    /// No alert: an operator tests the targets.
    Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    pub alert_id: AlertId,
    pub definition_id: DefinitionId,
    pub event: Event,
    /// The position of the target in the definition.
    pub number: usize,
    /// The number of the snooze that ended; 0 for other events.
    pub(in crate::alerts) round: i64,
    /// Without the secret, which is looked up for each attempt.
    pub target: Target,
    pub delivery: Delivery,
    pub(in crate::alerts) version: i64,
}

impl Event {
    const ALL: [Self; 4] = [Self::Raised, Self::Cleared, Self::SnoozeEnded, Self::Test];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Raised => "raised",
            Self::Cleared => "cleared",
            Self::SnoozeEnded => "snooze_ended",
            Self::Test => "test",
        }
    }
}

impl Notification {
    /// A new notification, not sent before `due_at`.
    pub(in crate::alerts) fn queued(
        alert_id: &AlertId,
        definition_id: &DefinitionId,
        event: Event,
        number: usize,
        target: &Target,
        now: EpochMillis,
        due_at: EpochMillis,
    ) -> Self {
        let mut notification = Self {
            alert_id: alert_id.clone(),
            definition_id: definition_id.clone(),
            event,
            number,
            round: 0,
            target: match target {
                Target::Webhook { url, .. } => Target::Webhook {
                    url: url.clone(),
                    secret: None,
                },
                target => target.clone(),
            },
            delivery: Delivery::queued(due_at),
            version: 1,
        };
        let mut what = notification.target.shown();
        if due_at > now {
            what.push_str(&format!(", held back until {}", UtcMillis::new(due_at)));
        }
        notification.delivery.note(now, what);
        notification
    }

    /// The sort key.
    fn name(&self) -> String {
        let Self {
            event,
            number,
            round,
            ..
        } = self;
        match round {
            0 => format!("{}#{number:02}", event.as_str()),
            round => format!("{}#{number:02}#{round}", event.as_str()),
        }
    }

    /// By this id targets recognize the notification: it is the same for every attempt. The id of a webhook must
    /// not have a dot in it.
    pub(in crate::alerts) fn message_id(&self) -> String {
        let (alert_id, event, number) = (&self.alert_id, self.event.as_str(), self.number);
        match self.round {
            0 => format!("{alert_id}-{event}-{number}"),
            round => format!("{alert_id}-{event}-{number}-{round}"),
        }
    }

    /// The write that replaces the stored notification, unless it has changed since it was read.
    pub(in crate::alerts) fn save(
        &mut self,
        retention_secs: Option<i64>,
    ) -> Result<Put, AlertsError> {
        let is_unchanged = Path::from(schema::VERSION).equals(self.version);
        self.version += 1;
        let put = Put::new(schema::OUTBOX, self.to_item(retention_secs)?);
        Ok(put.when(is_unchanged))
    }

    pub(in crate::alerts) fn to_item(
        &self,
        retention_secs: Option<i64>,
    ) -> Result<Item, AlertsError> {
        let target = serde_json::to_string(&self.target)
            .map_err(|error| AlertsError::Malformed(error.to_string()))?;
        let retention_secs = match self.event {
            Event::Test => Some(TEST_RETENTION_SECS),
            _ => retention_secs,
        };
        let mut item = schema::notification_key(&self.alert_id, &self.name())
            .with(schema::DEFINITION_ID, &self.definition_id)
            .with(schema::TARGET, target)
            .with(schema::VERSION, self.version);
        for (name, value) in self.delivery.attributes() {
            item.insert(name, value);
        }
        match (
            self.delivery.next_at,
            self.delivery.steps.last(),
            retention_secs,
        ) {
            (Some(due), _, _) => {
                item.insert(schema::WORK, schema::WORK_PARTITION);
                item.insert(schema::DUE_AT_MS, due.0);
            }
            (None, Some(last), Some(retention)) => {
                let forget_at = last.at.seconds().plus_secs(retention);
                item.insert(schema::FORGET_AT, forget_at.0);
            }
            _ => {}
        }
        Ok(item)
    }

    pub(in crate::alerts) fn from_item(item: &Item) -> Result<Self, AlertsError> {
        Self::parse(item)
            .ok_or_else(|| AlertsError::Malformed("a notification has an unknown form".to_owned()))
    }

    fn parse(item: &Item) -> Option<Self> {
        let text = |name: &str| item.get(name).and_then(Value::as_str);
        let whole = |name: &str| item.get(name)?.as_number()?.to_i64();
        let mut name = text(schema::NOTIFICATION)?.split('#');
        let (event, number, round) = (name.next()?, name.next()?, name.next());
        let next_at = whole(schema::DUE_AT_MS).map(EpochMillis);
        Some(Self {
            alert_id: text(schema::ALERT_ID)?.parse().ok()?,
            definition_id: text(schema::DEFINITION_ID)?.parse().ok()?,
            event: Event::ALL.into_iter().find(|one| one.as_str() == event)?,
            number: number.parse().ok()?,
            round: round.map_or(Ok(0), str::parse).ok()?,
            target: serde_json::from_str(text(schema::TARGET)?).ok()?,
            delivery: Delivery::parse(|name| item.get(name), next_at)?,
            version: whole(schema::VERSION)?,
        })
    }
}

impl Entry for Notification {
    fn delivery(&self, _: usize) -> &Delivery {
        &self.delivery
    }

    fn delivery_mut(&mut self, _: usize) -> &mut Delivery {
        &mut self.delivery
    }
}
