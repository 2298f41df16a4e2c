//! An alert: raised once, cleared once, acknowledged by a person; and its stored form and lists.

use homeport_item::expression::{Condition as Expression, KeyCondition, Path, Update};
use homeport_item::{Item, Number, Value};
use homeport_store::{Get, Query, ReturnValues, Update as UpdateRequest, WriteError};

use super::delivery::notification::Notification;
use super::types::{AlertId, DefinitionId, DefinitionName, DeviceName, Note, PersonName};
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
}

/// The filter of a list of alerts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AlertFilter {
    pub state: StateFilter,
    pub device: Option<String>,
    pub definition: Option<DefinitionId>,
    pub severity: Option<Severity>,
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
        Some(Self {
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

    /// The notifications of an alert with the state of their deliveries.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn notifications(&self, id: &AlertId) -> Result<Vec<Notification>, AlertsError> {
        let query = Query {
            consistent: true,
            ..Query::new(schema::OUTBOX, KeyCondition::new(schema::ALERT_ID, id))
        };
        let page = self.0.store.query(query).await?;
        page.items.iter().map(Notification::from_item).collect()
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
        let start = cursor.map(|cursor| cursor.start_of(&list)).transpose()?;
        let query = Query {
            filter: [is_cleared, of_device, of_definition, of_severity]
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

    /// Acknowledges an alert, open or cleared. The first acknowledgement counts; repeating it changes
    /// nothing.
    ///
    /// # Errors
    /// When the alert does not exist, someone else has acknowledged it, or the store fails.
    pub async fn acknowledge(
        &self,
        id: &AlertId,
        by: PersonName,
        note: Option<Note>,
    ) -> Result<Alert, AlertsError> {
        let mut update = Update::new()
            .set(schema::ACKNOWLEDGED_AT, Value::from(self.now().0))
            .set(schema::ACKNOWLEDGED_BY, Value::from(&by));
        if let Some(note) = &note {
            update = update.set(schema::ACKNOWLEDGED_NOTE, Value::from(note));
        }
        let is_first =
            Expression::exists(schema::ALL).and(Expression::not_exists(schema::ACKNOWLEDGED_AT));
        let request = UpdateRequest::new(schema::ALERTS, schema::alert_key(id), update)
            .when(is_first)
            .returning(ReturnValues::AllNew);
        match self.0.store.update(request).await {
            Ok(Some(item)) => Alert::from_item(&item),
            Ok(None) => self.alert(id).await,
            Err(WriteError::Store(error)) => Err(error.into()),
            Err(WriteError::ConditionFailed { .. }) => {
                let alert = self.alert(id).await?;
                let is_same = alert
                    .acknowledged
                    .as_ref()
                    .is_some_and(|before| before.by == by && before.note == note);
                is_same
                    .then_some(alert)
                    .ok_or(AlertsError::AlreadyAcknowledged)
            }
        }
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
