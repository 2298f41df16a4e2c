//! Acknowledging alerts, one or many.

use futures_util::future::join_all;
use homeport_item::Value;
use homeport_item::expression::{Condition as Expression, Update};
use homeport_store::{ReturnValues, Update as UpdateRequest, WriteError};

use crate::alerts::alert::{Alert, AlertFilter, StateFilter};
use crate::alerts::types::{AlertId, Note, PersonName};
use crate::alerts::{Alerts, AlertsError, schema};

/// Alerts that one call acknowledges.
pub const ACKNOWLEDGED_AT_ONCE_MAX: usize = 100;
/// Pages of open alerts that a call by filter reads.
const PAGES_MAX: usize = 20;

/// The alerts to acknowledge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    Listed(Vec<AlertId>),
    /// The newest open alerts that match and are not acknowledged.
    Matching(AlertFilter),
}

/// The results of acknowledging many alerts.
#[derive(Debug)]
pub struct Acknowledged {
    pub results: Vec<(AlertId, Result<Alert, AlertsError>)>,
    /// More alerts match than one call acknowledges.
    pub has_more: bool,
}

impl Alerts {
    /// Acknowledges many alerts. Each has its own result; none depends on another.
    ///
    /// # Errors
    /// When the alerts that match cannot be read.
    pub async fn acknowledge_many(
        &self,
        selection: Selection,
        by: PersonName,
        note: Option<Note>,
    ) -> Result<Acknowledged, AlertsError> {
        let (ids, has_more) = match selection {
            Selection::Listed(ids) => (ids, false),
            Selection::Matching(filter) => self.unacknowledged(filter).await?,
        };
        let results = ids.into_iter().map(|id| async {
            let result = self.acknowledge(&id, by.clone(), note.clone()).await;
            (id, result)
        });
        Ok(Acknowledged {
            results: join_all(results).await,
            has_more,
        })
    }

    async fn unacknowledged(
        &self,
        filter: AlertFilter,
    ) -> Result<(Vec<AlertId>, bool), AlertsError> {
        let filter = AlertFilter {
            state: StateFilter::Open,
            is_unacknowledged: true,
            ..filter
        };
        let (mut ids, mut cursor) = (Vec::new(), None);
        for _ in 0..PAGES_MAX {
            let page = self.alerts(&filter, ACKNOWLEDGED_AT_ONCE_MAX, cursor);
            let page = page.await?;
            ids.extend(page.items.into_iter().map(|alert| alert.id));
            if ids.len() > ACKNOWLEDGED_AT_ONCE_MAX {
                ids.truncate(ACKNOWLEDGED_AT_ONCE_MAX);
                return Ok((ids, true));
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok((ids, false));
            }
        }
        Ok((ids, true))
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
        if let Some(alert) = self.change(id, update, is_first).await? {
            return Ok(alert);
        }
        let alert = self.alert(id).await?;
        let acknowledged = alert.acknowledged.as_ref();
        let is_same = acknowledged.is_some_and(|before| before.by == by && before.note == note);
        is_same
            .then_some(alert)
            .ok_or(AlertsError::AlreadyAcknowledged)
    }

    /// Changes an alert on a condition; `None` when it does not hold.
    pub(super) async fn change(
        &self,
        id: &AlertId,
        update: Update,
        condition: Expression,
    ) -> Result<Option<Alert>, AlertsError> {
        let request = UpdateRequest::new(schema::ALERTS, schema::alert_key(id), update)
            .when(condition)
            .returning(ReturnValues::AllNew);
        match self.0.store.update(request).await {
            Ok(Some(item)) => Alert::from_item(&item).map(Some),
            Ok(None) => self.alert(id).await.map(Some),
            Err(WriteError::ConditionFailed { .. }) => Ok(None),
            Err(WriteError::Store(error)) => Err(error.into()),
        }
    }
}
