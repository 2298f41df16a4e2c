//! A definition: the watched data, the devices, the condition and the targets; and its stored form.

use std::collections::BTreeSet;

use homeport_item::{Item, Value};
use serde::{Deserialize, Serialize};

use super::condition::Condition;
use super::quiet::Quiet;
use crate::alerts::types::{
    AttributePath, DefinitionId, DefinitionName, DeviceName, EmailAddress, TopicTemplate,
    WantedText, WebhookSecret, WebhookUrl,
};
use crate::alerts::{AlertsError, schema};
use crate::fleet::SystemName;
use crate::push::UserId;
use crate::sensors::InvalidField;
use crate::severity::Severity;
use crate::time::EpochMillis;

/// Devices that a definition can list.
pub const DEVICES_LISTED_MAX: usize = 200;
/// Targets that a definition can have.
pub const TARGETS_MAX: usize = 10;
/// The longest pause between two notifications: 31 days.
pub const INTERVAL_SECS_MAX: u32 = 31 * 24 * 60 * 60;

/// The watched devices of the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Devices {
    All,
    Listed(BTreeSet<DeviceName>),
    Prefix(DeviceName),
}

/// An attribute with a text that items must have, such as the message type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    pub attribute: AttributePath,
    pub equals: WantedText,
}

/// A receiver of notifications.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// Every active device of a user, through push.
    Push {
        user_id: String,
    },
    /// A URL that gets a signed request.
    Webhook {
        url: WebhookUrl,
        /// The server's secret unless given.
        secret: Option<WebhookSecret>,
    },
    /// An MQTT topic.
    Mqtt {
        topic: Option<TopicTemplate>,
    },
    Email {
        to: EmailAddress,
    },
}

/// The terms of a definition, which operators set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionTerms {
    pub name: DefinitionName,
    pub is_enabled: bool,
    /// The severity of the alerts that it raises.
    #[serde(default)]
    pub severity: Severity,
    /// The system whose data is watched.
    pub source: SystemName,
    /// Other items are ignored.
    pub filter: Option<Filter>,
    pub devices: Devices,
    pub condition: Condition,
    pub quiet: Option<Quiet>,
    /// The shortest time between two notifications that an alert of one device was raised.
    pub min_interval_secs: u32,
    pub targets: Vec<Target>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    pub id: DefinitionId,
    pub terms: DefinitionTerms,
    pub created_at: EpochMillis,
    pub updated_at: EpochMillis,
    /// Grows with every change.
    pub revision: i64,
    /// Grows when the watched data changes, which invalidates all earlier watches.
    pub(in crate::alerts) epoch: i64,
    /// When the epoch began; earlier changes are ignored.
    pub(in crate::alerts) since: EpochMillis,
    /// The last epoch whose watches are all up to date.
    pub(in crate::alerts) settled_epoch: i64,
    pub(in crate::alerts) is_deleted: bool,
}

impl Devices {
    pub(in crate::alerts) fn has(&self, device: &str) -> bool {
        match self {
            Self::All => true,
            Self::Listed(devices) => devices.iter().any(|listed| listed.as_str() == device),
            Self::Prefix(prefix) => device.starts_with(prefix.as_str()),
        }
    }
}

impl Target {
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Push { .. } => "push",
            Self::Webhook { .. } => "webhook",
            Self::Mqtt { .. } => "mqtt",
            Self::Email { .. } => "email",
        }
    }

    /// The user, URL, topic or e-mail address.
    #[must_use]
    pub fn address(&self) -> String {
        match self {
            Self::Push { user_id } => user_id.clone(),
            Self::Webhook { url, .. } => url.to_string(),
            Self::Mqtt { topic: Some(topic) } => topic.to_string(),
            Self::Mqtt { topic: None } => TopicTemplate::of_device().to_string(),
            Self::Email { to } => to.to_string(),
        }
    }

    /// A description for the trace, without the secret.
    pub(in crate::alerts) fn shown(&self) -> String {
        let what = match self {
            Self::Push { .. } => "push to user",
            Self::Webhook { .. } => "webhook",
            Self::Mqtt { .. } => "mqtt topic",
            Self::Email { .. } => "e-mail to",
        };
        format!("{what} {}", self.address())
    }
}

impl DefinitionTerms {
    /// Checks the limits of all fields.
    ///
    /// # Errors
    /// When a field is invalid.
    pub fn check(self) -> Result<Self, InvalidField> {
        let invalid = |field, expected| Err(InvalidField { field, expected });
        if let Devices::Listed(devices) = &self.devices
            && !(1..=DEVICES_LISTED_MAX).contains(&devices.len())
        {
            return invalid("devices", "a list of 1 to 200 devices");
        }
        if self.targets.len() > TARGETS_MAX {
            return invalid("targets", "at most 10");
        }
        if self.min_interval_secs > INTERVAL_SECS_MAX {
            return invalid("min_interval_secs", "at most 2678400");
        }
        for target in &self.targets {
            if let Target::Push { user_id } = target {
                user_id.parse::<UserId>()?;
            }
        }
        let condition = self.condition.check()?;
        let quiet = self.quiet.map(Quiet::check).transpose()?;
        Ok(Self {
            condition,
            quiet,
            ..self
        })
    }

    /// Whether both watch the same data in the same way, so that watches stay valid.
    pub(in crate::alerts) fn watches_like(&self, other: &Self) -> bool {
        self.is_enabled == other.is_enabled
            && self.source == other.source
            && self.filter == other.filter
            && self.devices == other.devices
            && self.condition == other.condition
    }
}

impl Definition {
    pub(in crate::alerts) fn is_watching(&self) -> bool {
        self.terms.is_enabled && !self.is_deleted
    }

    pub(in crate::alerts) fn is_settled(&self) -> bool {
        self.settled_epoch == self.epoch && !self.is_deleted
    }

    /// The earliest time for a notification that is created now, if the last one about the same
    /// device was planned for `last`.
    pub(in crate::alerts) fn notify_at(
        &self,
        now: EpochMillis,
        last: Option<EpochMillis>,
    ) -> EpochMillis {
        let interval_ms = i64::from(self.terms.min_interval_secs) * 1000;
        let after_last = match last {
            // The last one is still held back. At its time one of the two alerts is cleared, and the
            // other one is sent.
            Some(last) if last > now => last,
            Some(last) => now.max(EpochMillis(last.0.saturating_add(interval_ms))),
            None => now,
        };
        let quiet = self.terms.quiet.as_ref();
        quiet
            .and_then(|quiet| quiet.end(after_last))
            .unwrap_or(after_last)
    }

    pub(in crate::alerts) fn to_item(&self) -> Result<Item, AlertsError> {
        let terms = serde_json::to_string(&self.terms)
            .map_err(|error| AlertsError::Malformed(error.to_string()))?;
        let mut item = schema::definition_key(&self.id)
            .with(schema::REVISION, self.revision)
            .with(schema::EPOCH, self.epoch)
            .with(schema::SETTLED_EPOCH, self.settled_epoch)
            .with(schema::SINCE, self.since.0)
            .with(schema::CREATED_AT, self.created_at.0)
            .with(schema::UPDATED_AT, self.updated_at.0)
            .with(schema::DEFINITION, terms);
        if self.is_deleted {
            item.insert(schema::DELETED, true);
        }
        Ok(item)
    }

    pub(in crate::alerts) fn from_item(item: &Item) -> Result<Self, AlertsError> {
        let malformed = |what: &str| AlertsError::Malformed(format!("{what} of a definition"));
        let text = |name: &str| item.get(name).and_then(Value::as_str);
        let whole = |name: &str| {
            let found = item.get(name).and_then(Value::as_number);
            found
                .and_then(homeport_item::Number::to_i64)
                .ok_or_else(|| malformed(name))
        };
        let id = text(schema::DEFINITION_ID).and_then(|id| id.parse().ok());
        let terms = text(schema::DEFINITION).and_then(|terms| serde_json::from_str(terms).ok());
        Ok(Self {
            id: id.ok_or_else(|| malformed(schema::DEFINITION_ID))?,
            terms: terms.ok_or_else(|| malformed(schema::DEFINITION))?,
            created_at: EpochMillis(whole(schema::CREATED_AT)?),
            updated_at: EpochMillis(whole(schema::UPDATED_AT)?),
            revision: whole(schema::REVISION)?,
            epoch: whole(schema::EPOCH)?,
            since: EpochMillis(whole(schema::SINCE)?),
            settled_epoch: whole(schema::SETTLED_EPOCH)?,
            is_deleted: item.get(schema::DELETED).is_some(),
        })
    }
}
