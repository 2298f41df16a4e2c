//! The worker and the followers at work, until they are told to stop.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::definition::SourceKind;
use super::transition::{CLEARED, RAISED};
use super::worker::Worker;
use super::{Alerts, AlertsError};

/// How often the store is looked at when nothing is known to be due: another process may have
/// changed a definition.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// The pause between two turns that have something to do.
const PAUSE_LEAST: Duration = Duration::from_millis(10);
/// The pause after a failure of the store; every further one is twice as long, up to the longest.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_LONGEST: Duration = Duration::from_secs(60);

impl Worker {
    /// Works until told to stop. A turn that has begun comes to its end first: what targets answer
    /// is written down, so that stopping in order repeats nothing.
    pub async fn run_until(mut self, stop: impl Future<Output = ()>) {
        // An alarm on a counter should see a zero and not nothing.
        for name in [RAISED, CLEARED] {
            metrics::counter!(name).increment(0);
        }
        let mut stop = pin!(stop);
        let mut pause_after_failure = PAUSE_FIRST;
        loop {
            let pause = match self.turn().await {
                Ok(turn) => {
                    pause_after_failure = PAUSE_FIRST;
                    self.pause_until(turn.next_at.map(|at| at.0))
                }
                Err(error) => {
                    tracing::warn!(%error, "the worker of alerts failed; it will be tried again");
                    metrics::counter!("homeport_alert_worker_failures_total").increment(1);
                    let pause = pause_after_failure;
                    pause_after_failure = (pause * 2).min(PAUSE_LONGEST);
                    pause
                }
            };
            tokio::select! {
                () = &mut stop => return,
                () = self.alerts.0.work.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    fn pause_until(&self, at_ms: Option<i64>) -> Duration {
        let Some(at_ms) = at_ms else {
            return LOOK_EVERY;
        };
        let wait_ms = u64::try_from(at_ms - self.alerts.now().0).unwrap_or(0);
        Duration::from_millis(wait_ms).clamp(PAUSE_LEAST, LOOK_EVERY)
    }
}

/// The sources that are followed; those that are dropped are followed no more.
#[derive(Default)]
struct Followers(BTreeMap<SourceKind, JoinHandle<()>>);

impl Drop for Followers {
    fn drop(&mut self) {
        for follower in self.0.values() {
            follower.abort();
        }
    }
}

impl Alerts {
    /// Follows the sources that an enabled definition watches, and no others, as definitions come
    /// and go. This never ends by itself, and may be dropped at any time: whoever follows next takes
    /// up where the positions stand.
    pub async fn follow(&self) {
        let mut changes = self.0.registry.subscribe();
        let mut followers = Followers::default();
        if let Err(error) = self.refresh().await {
            tracing::warn!(%error, "the definitions of alerts will be read later");
        }
        loop {
            changes.mark_unchanged();
            if let Err(error) = self.adjust(&mut followers).await {
                tracing::warn!(%error, "a source of alerts will be followed later");
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    async fn adjust(&self, followers: &mut Followers) -> Result<(), AlertsError> {
        let Some(reactions) = &self.0.reactions else {
            return Ok(());
        };
        let snapshot = self.0.registry.now();
        for kind in SourceKind::ALL {
            let is_followed = followers
                .0
                .get(&kind)
                .is_some_and(|task| !task.is_finished());
            if snapshot.needs(kind) == is_followed {
                continue;
            }
            if let Some(follower) = followers.0.remove(&kind) {
                follower.abort();
                // It may be in the middle of something: the next one begins after it has ended.
                let _ = follower.await;
            }
            if !is_followed {
                self.ensure_stream(kind).await?;
                let (reactions, reaction) = (reactions.clone(), self.reaction(kind));
                let follower =
                    tokio::spawn(async move { reactions.follow(Arc::new(reaction)).await });
                followers.0.insert(kind, follower);
            }
        }
        Ok(())
    }
}
