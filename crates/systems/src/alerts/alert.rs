//! An alert: raised once, cleared once, handled by people; and its stored form and lists.

use homeport_item::expression::{Condition as Expression, KeyCondition, Path, Update};
use homeport_item::{Item, Map, Number, Value};
use homeport_store::{Get, Query, Update as UpdateRequest};

use super::types::{
    AlertId, CommentText, DefinitionId, DefinitionName, DeviceName, Note, PersonName,
};
use super::{Alerts, AlertsError, PAGE_MAX, schema};
use crate::cursor::Cursor;
use crate::fleet::SystemName;
use crate::pages::{self, Page};
use crate::severity::Severity;
use crate::time::EpochMillis;

/// When and why an alert was cleared.
#[derive(Debug, Clone, PartialEq)]
pub struct Cleared {
    pub at: EpochMillis,
    pub reason: String,
    pub value: Option<Number>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acknowledgement {
    pub at: EpochMillis,
    pub by: PersonName,
    pub note: Option<Note>,
}

/// A time in which no notifications of an alert are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snooze {
    pub at: EpochMillis,
    pub by: PersonName,
    pub until: EpochMillis,
}

/// The last assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    pub at: EpochMillis,
    pub by: PersonName,
    /// `None` if the alert was taken away from somebody.
    pub to: Option<PersonName>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    pub at: EpochMillis,
    pub by: PersonName,
    pub text: CommentText,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Alert {
    pub id: AlertId,
    pub definition_id: DefinitionId,
    /// The name of the definition when the alert was raised.
    pub definition_name: DefinitionName,
    pub source: SystemName,
    pub device: DeviceName,
    /// The severity of the definition when the alert was raised.
    pub severity: Severity,
    pub reason: String,
    pub value: Option<Number>,
    /// The time of the value that raised it, or of the last sign of life.
    pub observed_at: EpochMillis,
    pub raised_at: EpochMillis,
    pub cleared: Option<Cleared>,
    pub acknowledged: Option<Acknowledgement>,
    /// The last snooze, which may be over.
    pub(in crate::alerts) snooze: Option<Snooze>,
    /// How often it was snoozed.
    pub(in crate::alerts) snoozes: i64,
    pub assignment: Option<Assignment>,
    /// The oldest first.
    pub comments: Vec<Comment>,
    /// When a notification last failed for good.
    pub delivery_failed_at: Option<EpochMillis>,
}

/// The filter of a list of alerts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AlertFilter {
    pub state: StateFilter,
    pub device: Option<String>,
    pub definition: Option<DefinitionId>,
    pub severity: Option<Severity>,
    /// Only alerts with a notification that failed for good.
    pub is_undelivered: bool,
    /// Only alerts that nobody has acknowledged.
    pub is_unacknowledged: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StateFilter {
    Open,
    Cleared,
    #[default]
    All,
}

impl Alert {
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.cleared.is_none()
    }

    /// The snooze that delays notifications now.
    #[must_use]
    pub fn snoozed(&self, now: EpochMillis) -> Option<&Snooze> {
        let snooze = self.snooze.as_ref();
        snooze.filter(|snooze| snooze.until > now)
    }

    /// A new alert as an item: open and without expiry.
    pub(super) fn to_item(&self) -> Item {
        let mut item = schema::alert_key(&self.id)
            .with(schema::ALL, schema::ALERTS_SHELF)
            .with(schema::OPEN, schema::ALERTS_SHELF)
            .with(schema::DEFINITION_ID, &self.definition_id)
            .with(schema::DEFINITION_NAME, &self.definition_name)
            .with(schema::SOURCE, self.source.as_str())
            .with(schema::DEVICE, &self.device)
            .with(schema::SEVERITY, self.severity.as_str())
            .with(schema::REASON, self.reason.as_str())
            .with(schema::OBSERVED_AT, self.observed_at.0)
            .with(schema::RAISED_AT, self.raised_at.0);
        if let Some(value) = self.value {
            item.insert(schema::VALUE, value);
        }
        if let Some(at) = self.delivery_failed_at {
            item.insert(schema::DELIVERY_FAILED_AT, at.0);
        }
        item
    }

    pub(super) fn from_item(item: &Item) -> Result<Self, AlertsError> {
        Self::parse(item)
            .ok_or_else(|| AlertsError::Malformed("an alert has an unknown form".to_owned()))
    }

    fn parse(item: &Item) -> Option<Self> {
        let text = |name: &str| item.get(name).and_then(Value::as_str);
        let millis = |name: &str| item.get(name)?.as_number()?.to_i64().map(EpochMillis);
        let number = |name: &str| item.get(name).and_then(Value::as_number).copied();
        let cleared = match millis(schema::CLEARED_AT) {
            Some(at) => Some(Cleared {
                at,
                reason: text(schema::CLEAR_REASON)?.to_owned(),
                value: number(schema::CLEAR_VALUE),
            }),
            None => None,
        };
        let acknowledged = match millis(schema::ACKNOWLEDGED_AT) {
            Some(at) => Some(Acknowledgement {
                at,
                by: text(schema::ACKNOWLEDGED_BY)?.parse().ok()?,
                note: match text(schema::ACKNOWLEDGED_NOTE) {
                    Some(note) => Some(note.parse().ok()?),
                    None => None,
                },
            }),
            None => None,
        };
        let snooze = match millis(schema::SNOOZED_UNTIL) {
            Some(until) => Some(Snooze {
                at: millis(schema::SNOOZED_AT)?,
                by: text(schema::SNOOZED_BY)?.parse().ok()?,
                until,
            }),
            None => None,
        };
        let assignment = match millis(schema::ASSIGNED_AT) {
            Some(at) => Some(Assignment {
                at,
                by: text(schema::ASSIGNED_BY)?.parse().ok()?,
                to: match text(schema::ASSIGNED_TO) {
                    Some(name) => Some(name.parse().ok()?),
                    None => None,
                },
            }),
            None => None,
        };
        let comments = item.get(schema::COMMENTS).and_then(Value::as_list);
        let comments = comments.unwrap_or_default().iter().map(Comment::parse);
        Some(Self {
            snooze,
            snoozes: item
                .get(schema::SNOOZES)
                .and_then(|count| count.as_number()?.to_i64())
                .unwrap_or(0),
            assignment,
            comments: comments.collect::<Option<_>>()?,
            delivery_failed_at: millis(schema::DELIVERY_FAILED_AT),
            id: text(schema::ALERT_ID)?.parse().ok()?,
            definition_id: text(schema::DEFINITION_ID)?.parse().ok()?,
            definition_name: text(schema::DEFINITION_NAME)?.parse().ok()?,
            source: text(schema::SOURCE)?.to_owned().into(),
            device: DeviceName::stored(text(schema::DEVICE)?.to_owned()),
            severity: match text(schema::SEVERITY) {
                Some(word) => Severity::of_word(word)?,
                None => Severity::default(),
            },
            reason: text(schema::REASON)?.to_owned(),
            value: number(schema::VALUE),
            observed_at: millis(schema::OBSERVED_AT)?,
            raised_at: millis(schema::RAISED_AT)?,
            cleared,
            acknowledged,
        })
    }
}

impl Comment {
    fn parse(value: &Value) -> Option<Self> {
        let fields = value.as_map()?;
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        Some(Self {
            at: EpochMillis(fields.get(schema::COMMENT_AT)?.as_number()?.to_i64()?),
            by: text(schema::COMMENT_BY)?.parse().ok()?,
            text: text(schema::COMMENT_TEXT)?.parse().ok()?,
        })
    }

    pub(super) fn to_value(&self) -> Value {
        let members: [(&str, Value); 3] = [
            (schema::COMMENT_AT, self.at.0.into()),
            (schema::COMMENT_BY, Value::from(&self.by)),
            (schema::COMMENT_TEXT, Value::from(&self.text)),
        ];
        Value::M(Map::from_iter(
            members.map(|(name, value)| (name.to_owned(), value)),
        ))
    }
}

/// The write that clears an open alert and sets its expiry.
pub(super) fn clearing(
    id: &AlertId,
    cleared: &Cleared,
    retention_secs: Option<i64>,
) -> UpdateRequest {
    let mut update = Update::new()
        .set(schema::CLEARED_AT, Value::from(cleared.at.0))
        .set(schema::CLEAR_REASON, Value::from(cleared.reason.as_str()))
        .remove(schema::OPEN);
    if let Some(value) = cleared.value {
        update = update.set(schema::CLEAR_VALUE, Value::from(value));
    }
    if let Some(retention) = retention_secs {
        let forget_at = cleared.at.seconds().plus_secs(retention);
        update = update.set(schema::FORGET_AT, Value::from(forget_at.0));
    }
    UpdateRequest::new(schema::ALERTS, schema::alert_key(id), update)
        .when(Expression::exists(schema::OPEN))
}

impl Alerts {
    /// Reads an alert.
    ///
    /// # Errors
    /// When the alert does not exist, or the store fails.
    pub async fn alert(&self, id: &AlertId) -> Result<Alert, AlertsError> {
        let get = Get::new(schema::ALERTS, schema::alert_key(id));
        let item = self.0.store.get(get).await?;
        Alert::from_item(&item.ok_or(AlertsError::AlertMissing)?)
    }

    /// Lists alerts, newest first.
    ///
    /// # Errors
    /// When the cursor is of another list, or the store fails.
    pub async fn alerts(
        &self,
        filter: &AlertFilter,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Page<Alert>, AlertsError> {
        let list = format!("alerts {filter:?}");
        let (index, partition) = match filter.state {
            StateFilter::Open => (schema::OPEN_INDEX, schema::OPEN),
            StateFilter::Cleared | StateFilter::All => (schema::ALL_INDEX, schema::ALL),
        };
        let is_cleared =
            (filter.state == StateFilter::Cleared).then(|| Expression::not_exists(schema::OPEN));
        let of_device = filter.device.as_ref();
        let of_device =
            of_device.map(|device| Path::from(schema::DEVICE).equals(Value::from(device.as_str())));
        let of_definition = filter.definition.as_ref();
        let of_definition =
            of_definition.map(|id| Path::from(schema::DEFINITION_ID).equals(Value::from(id)));
        let of_severity = filter.severity.map(of_severity);
        let is_undelivered = filter
            .is_undelivered
            .then(|| Expression::exists(schema::DELIVERY_FAILED_AT));
        let is_unacknowledged = filter
            .is_unacknowledged
            .then(|| Expression::not_exists(schema::ACKNOWLEDGED_AT));
        let start = cursor.map(|cursor| cursor.start_of(&list)).transpose()?;
        let query = Query {
            filter: [
                is_cleared,
                of_device,
                of_definition,
                of_severity,
                is_undelivered,
                is_unacknowledged,
            ]
            .into_iter()
            .flatten()
            .reduce(Expression::and),
            ..Query::new(
                schema::ALERTS,
                KeyCondition::new(partition, schema::ALERTS_SHELF),
            )
        };
        let query = query.on_index(index).descending().starting_after(start);
        let limit = limit.min(PAGE_MAX);
        let (store, table) = (&*self.0.store, schema::alerts());
        let page = pages::read_page(store, &table, query, &list, limit).await?;
        Ok(page.readable(&table, Alert::from_item))
    }

    /// Counts the open alerts up to a bound.
    pub(super) async fn open_alerts(&self) -> Result<usize, AlertsError> {
        let mut query = Query {
            count_only: true,
            ..Query::new(
                schema::ALERTS,
                KeyCondition::new(schema::OPEN, schema::ALERTS_SHELF),
            )
        }
        .on_index(schema::OPEN_INDEX);
        let mut open = 0;
        for _ in 0..COUNT_PAGES_MAX {
            let page = self.0.store.query(query.clone()).await?;
            open += page.count;
            query.start = page.next;
            if query.start.is_none() {
                break;
            }
        }
        Ok(open)
    }
}

/// Alerts of a severity. Those that were stored without one have the default.
fn of_severity(severity: Severity) -> Expression {
    let is_same = Path::from(schema::SEVERITY).equals(Value::from(severity.as_str()));
    if severity == Severity::default() {
        is_same.or(Expression::not_exists(schema::SEVERITY))
    } else {
        is_same
    }
}

/// Pages of open alerts that are counted; each is a megabyte.
const COUNT_PAGES_MAX: usize = 16;
