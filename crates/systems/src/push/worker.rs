//! The worker: turn by turn it does what is due. What it must remember is in the store; what it
//! holds itself is only how fast it may go.

use std::sync::Arc;

use homeport_item::Value;
use homeport_item::expression::{KeyCondition, SortCondition};
use homeport_store::Query;

use super::measured::store_error;
use super::notification::Notification;
use super::pace::Pace;
use super::service::PushService;
use super::{Push, PushError, schema, stored};
use crate::time::EpochMillis;

/// Notifications that one turn looks at.
const DUE_AT_ONCE: usize = 200;
/// When to look again at what is due and cannot be done for a reason that is not known.
const HELD_UP_MS: i64 = 1000;

/// Sends what the outbox holds. Several may run on one store: each goes at its own pace.
pub struct Worker {
    pub(super) push: Push,
    pub(super) service: Arc<dyn PushService>,
    pub(super) pace: Pace,
    /// Failures in a row, and until when they hold everything up.
    pub(super) failures: u32,
    pub(super) sending_paused_until: EpochMillis,
    pub(super) receipt_failures: u32,
    pub(super) receipts_paused_until: EpochMillis,
}

/// What a turn did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Turn {
    /// Messages that went out, answered or not.
    pub messages: usize,
    /// Receipts that were asked for.
    pub receipts: usize,
    /// Tokens that were deactivated.
    pub deactivated: usize,
    /// When the next turn has something to do, as far as is known.
    pub next_at: Option<EpochMillis>,
}

impl Worker {
    #[must_use]
    pub fn new(push: Push, service: Arc<dyn PushService>) -> Self {
        let now = push.now();
        Self {
            pace: Pace::new(push.settings.rate_per_second, now),
            push,
            service,
            failures: 0,
            sending_paused_until: now,
            receipt_failures: 0,
            receipts_paused_until: now,
        }
    }

    /// Does what is due, at most one request of each kind.
    ///
    /// # Errors
    /// When the store fails. What was due stays due.
    pub async fn turn(&mut self) -> Result<Turn, PushError> {
        let mut due = self.due().await?;
        let messages = self.send_due(&mut due).await?;
        let deactivated = self.deactivate_due(&mut due).await?;
        let receipts = self.fetch_receipts(&mut due).await?;
        let open = self.push.open_notifications().await?;
        metrics::gauge!("homeport_push_outbox_open").set(open as f64);
        let is_idle = messages + deactivated + receipts == 0;
        Ok(Turn {
            messages,
            receipts,
            deactivated,
            next_at: self.next_at(is_idle).await?,
        })
    }

    async fn due(&self) -> Result<Vec<Notification>, PushError> {
        let now = self.push.now();
        let until = SortCondition::LessOrEqual(now.0.into());
        let query = work(Some(until)).limit(DUE_AT_ONCE);
        let page = self.push.store.query(query).await.map_err(store_error)?;
        let notifications = page.items.iter().filter_map(|item| {
            let parsed = stored::from_item(item);
            // What something else wrote must not hold up the rest.
            parsed
                .inspect_err(|error| tracing::warn!(%error, "a notification is left out"))
                .ok()
        });
        Ok(notifications.collect())
    }

    /// When there is something to do next: what is due first, or the end of what holds it up.
    async fn next_at(&mut self, is_idle: bool) -> Result<Option<EpochMillis>, PushError> {
        let query = work(None).limit(1);
        let page = self.push.store.query(query).await.map_err(store_error)?;
        let first = page.items.first();
        let due = first.and_then(|item| item.get(schema::DUE_AT_MS)?.as_number()?.to_i64());
        let now = self.push.now();
        Ok(due.map(|due| {
            if due > now.0 {
                return EpochMillis(due);
            }
            if !is_idle {
                return now;
            }
            // Something is due and yet nothing was done: it is held up, or someone else does it.
            let is_paced = self.pace.free(now) == 0;
            [
                Some(self.sending_paused_until),
                Some(self.receipts_paused_until),
                is_paced.then(|| self.pace.next_free(now)),
            ]
            .into_iter()
            .flatten()
            .filter(|until| *until > now)
            .min()
            .unwrap_or(EpochMillis(now.0 + HELD_UP_MS))
        }))
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Worker")
            .field("failures", &self.failures)
            .finish_non_exhaustive()
    }
}

/// What is open, by when it is due.
fn work(due: Option<SortCondition>) -> Query {
    let mut condition = KeyCondition::new(schema::WORK, Value::from(schema::WORK_PARTITION));
    if let Some(due) = due {
        condition = condition.with_sort(schema::DUE_AT_MS, due);
    }
    Query::new(schema::NOTIFICATIONS, condition).on_index(schema::WORK_INDEX)
}
