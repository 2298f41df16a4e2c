//! The worker: settles definitions, raises alerts of silent devices and sends what is due, turn by
//! turn. Its state is in the store.

use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Notify;

use super::outbox::AlertOutbox;
use super::service::Deliver;
use crate::alerts::judging::transition::{CLEARED, RAISED, TOO_OLD};
use crate::alerts::{Alerts, AlertsError};
use crate::outbox::{
    OutboxKind as _, OutboxWorker, due_entries, next_turn_at, run_until, send_each,
};
use crate::time::EpochMillis;

/// Notifications that one turn reads.
const DUE_PER_TURN: usize = 100;
/// Notifications that are sent at the same time.
const PARALLEL_MAX: usize = 8;
/// Pages of watches that one turn settles for each definition.
const PAGES_PER_TURN: usize = 50;

pub struct Worker {
    alerts: Alerts,
    outbox: AlertOutbox,
    /// Silences are judged from here on: after a start, devices get a while to be heard.
    silences_from: EpochMillis,
}

/// What a turn did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Turn {
    /// Notifications that were sent, answered or not.
    pub sent: usize,
    /// Silences that became alerts.
    pub silent: usize,
    /// When the next turn has something to do, if that is known.
    pub next_at: Option<EpochMillis>,
}

impl Worker {
    #[must_use]
    pub fn new(alerts: Alerts, service: Arc<dyn Deliver>) -> Self {
        let grace_ms = alerts.0.settings.silence_grace_secs.saturating_mul(1000);
        let silences_from = EpochMillis(alerts.now().0.saturating_add(grace_ms));
        Self {
            outbox: AlertOutbox {
                alerts: alerts.clone(),
                service,
            },
            alerts,
            silences_from,
        }
    }

    /// Runs until `stop` completes. A turn that has begun is finished first: answers are recorded, so
    /// that an orderly stop repeats nothing.
    pub async fn run_until(self, stop: impl Future<Output = ()>) {
        // An alarm on a counter sees zero instead of no data.
        for name in [RAISED, CLEARED, TOO_OLD] {
            metrics::counter!(name).increment(0);
        }
        run_until(self, stop).await;
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
            // A definition that cannot be settled does not block the others.
            if let Err(error) = self.alerts.settle(definition, PAGES_PER_TURN).await {
                tracing::warn!(%error, id = %definition.id, "settling a definition failed; it will be retried");
            }
        }
        let is_heard = self.alerts.now() >= self.silences_from;
        let silent = if is_heard {
            self.alerts.raise_silent().await
        } else {
            Ok(0)
        };
        // Due notifications are sent even if judging silences fails.
        let sent = self.send_due().await?;
        let silent = silent?;
        self.measure().await?;
        Ok(Turn {
            sent,
            silent,
            next_at: self.next_at(is_heard, sent > 0).await?,
        })
    }

    /// Sends what is due; returns how many notifications were tried.
    async fn send_due(&self) -> Result<usize, AlertsError> {
        let due = due_entries(&self.outbox, DUE_PER_TURN).await?;
        send_each(&self.outbox, due, PARALLEL_MAX).await
    }

    async fn measure(&self) -> Result<(), AlertsError> {
        let open = self.alerts.open_alerts().await?;
        metrics::gauge!("homeport_alerts_open").set(open as f64);
        let waiting = self.outbox.queue().open_count().await?;
        metrics::gauge!("homeport_alert_outbox_open").set(waiting as f64);
        Ok(())
    }

    /// When there is something to do next.
    async fn next_at(
        &self,
        is_heard: bool,
        was_busy: bool,
    ) -> Result<Option<EpochMillis>, AlertsError> {
        let now = self.alerts.now();
        let due = self.outbox.queue().first_due_at().await?;
        let due = due.map(|at| next_turn_at(at, now, was_busy));
        let mut silence = self.alerts.next_silence().await?;
        if !is_heard {
            silence = silence.map(|at| at.max(self.silences_from));
        }
        let silence = silence.map(|at| next_turn_at(at, now, false));
        Ok([due, silence].into_iter().flatten().min())
    }
}

#[async_trait]
impl OutboxWorker for Worker {
    type Error = AlertsError;

    const NAME: &'static str = "alerts";
    const FAILURES: &'static str = "homeport_alert_worker_failures_total";

    fn work(&self) -> Arc<Notify> {
        Arc::clone(&self.alerts.0.work)
    }

    fn now(&self) -> EpochMillis {
        self.alerts.now()
    }

    async fn next_turn(&mut self) -> Result<Option<EpochMillis>, AlertsError> {
        Ok(self.turn().await?.next_at)
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Worker").finish_non_exhaustive()
    }
}
