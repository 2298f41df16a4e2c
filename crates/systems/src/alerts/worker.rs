//! The worker: turn by turn it settles definitions, raises silences and sends what is due. What it
//! must remember is in the store.

use std::sync::Arc;

use homeport_item::expression::{KeyCondition, SortCondition};
use homeport_store::Query;
use tokio::task::JoinSet;

use super::notification::Notification;
use super::service::Deliver;
use super::{Alerts, AlertsError, schema};
use crate::time::EpochMillis;

/// Notifications that one turn looks at.
const DUE_AT_ONCE: usize = 100;
/// Notifications that are on their way at the same time.
const SENT_AT_ONCE: usize = 8;
/// Pages of watches that are settled in one turn, for each definition.
const PAGES_PER_TURN: usize = 50;
/// When to look again at what is due and could not be done.
const HELD_UP_MS: i64 = 1000;

pub struct Worker {
    pub(super) alerts: Alerts,
    service: Arc<dyn Deliver>,
    /// Silences are judged from here on: devices get a while to be heard after a start.
    silences_from: EpochMillis,
}

/// What a turn did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Turn {
    /// Notifications that were tried to be sent.
    pub sent: usize,
    /// Silences that became alerts.
    pub silent: usize,
    /// When the next turn has something to do, as far as is known.
    pub next_at: Option<EpochMillis>,
}

impl Worker {
    #[must_use]
    pub fn new(alerts: Alerts, service: Arc<dyn Deliver>) -> Self {
        let grace_ms = alerts.0.settings.silence_grace_secs.saturating_mul(1000);
        let silences_from = EpochMillis(alerts.now().0.saturating_add(grace_ms));
        Self {
            alerts,
            service,
            silences_from,
        }
    }

    /// Does what is due.
    ///
    /// # Errors
    /// When the store fails. What was due stays due.
    pub async fn turn(&mut self) -> Result<Turn, AlertsError> {
        for definition in &self.alerts.refresh().await?.definitions {
            if definition.is_settled() {
                continue;
            }
            // One that cannot be settled must not hold up the rest.
            if let Err(error) = self.alerts.settle(definition, PAGES_PER_TURN).await {
                tracing::warn!(%error, id = %definition.id, "a definition will be settled later");
            }
        }
        let is_heard = self.alerts.now() >= self.silences_from;
        let silent = if is_heard {
            self.alerts.raise_silent().await
        } else {
            Ok(0)
        };
        // What waits is sent also when silences cannot be judged.
        let sent = self.send_due().await?;
        let silent = silent?;
        self.measure().await?;
        Ok(Turn {
            sent,
            silent,
            next_at: self.next_at(is_heard, sent > 0).await?,
        })
    }

    /// Tries to send what is due, some at a time; how many there were.
    async fn send_due(&self) -> Result<usize, AlertsError> {
        let now = self.alerts.now();
        let query = work(Some(SortCondition::LessOrEqual(now.0.into()))).limit(DUE_AT_ONCE);
        let page = self.alerts.0.store.query(query).await?;
        let mut due = page.items.iter().filter_map(|item| {
            let parsed = Notification::from_item(item);
            // What something else wrote must not hold up the rest.
            parsed
                .inspect_err(|error| tracing::warn!(%error, "a notification is left out"))
                .ok()
        });
        let (mut sending, mut sent, mut failure) = (JoinSet::new(), 0, None);
        loop {
            while sending.len() < SENT_AT_ONCE
                && let Some(notification) = due.next()
            {
                let (alerts, service) = (self.alerts.clone(), Arc::clone(&self.service));
                sending.spawn(async move { alerts.deliver(notification, &*service).await });
            }
            match sending.join_next().await {
                None => break,
                Some(Ok(Ok(was_sent))) => sent += usize::from(was_sent),
                // The others come to their end first.
                Some(Ok(Err(error))) => failure = Some(error),
                Some(Err(error)) => failure = Some(AlertsError::Malformed(error.to_string())),
            }
        }
        failure.map_or(Ok(sent), Err)
    }

    async fn measure(&self) -> Result<(), AlertsError> {
        let open = self.alerts.open_alerts().await?;
        metrics::gauge!("homeport_alerts_open").set(open as f64);
        let waiting = self.alerts.open_notifications().await?;
        metrics::gauge!("homeport_alert_outbox_open").set(waiting as f64);
        Ok(())
    }

    /// When there is something to do next.
    async fn next_at(
        &self,
        is_heard: bool,
        was_busy: bool,
    ) -> Result<Option<EpochMillis>, AlertsError> {
        let page = self.alerts.0.store.query(work(None).limit(1)).await?;
        let due = page
            .items
            .first()
            .and_then(|item| item.get(schema::DUE_AT_MS));
        let due = due
            .and_then(|due| due.as_number()?.to_i64())
            .map(EpochMillis);
        let mut silence = self.alerts.next_silence().await?;
        if !is_heard {
            silence = silence.map(|at| at.max(self.silences_from));
        }
        let now = self.alerts.now();
        let later = |at: EpochMillis, pause_ms| {
            if at > now {
                at
            } else {
                EpochMillis(now.0 + pause_ms)
            }
        };
        // What is due and was not done is held up, or someone else does it.
        let due = due.map(|at| later(at, if was_busy { 0 } else { HELD_UP_MS }));
        let silence = silence.map(|at| later(at, HELD_UP_MS));
        Ok([due, silence].into_iter().flatten().min())
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Worker").finish_non_exhaustive()
    }
}

/// What is to be sent, by when it is due.
fn work(due: Option<SortCondition>) -> Query {
    let mut condition = KeyCondition::new(schema::WORK, schema::WORK_PARTITION);
    if let Some(due) = due {
        condition = condition.with_sort(schema::DUE_AT_MS, due);
    }
    Query::new(schema::OUTBOX, condition).on_index(schema::WORK_INDEX)
}
