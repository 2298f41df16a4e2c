//! The tasks that follow the sources of enabled definitions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::reaction::AlertReaction;
use crate::alerts::{Alerts, AlertsError};
use crate::fleet::SystemName;

/// How often the definitions are compared with the followers without a signal: another process may
/// have changed a definition.
const ADJUST_EVERY: Duration = Duration::from_secs(10);

/// The tasks that follow sources. Dropping them stops them.
#[derive(Default)]
struct Followers(BTreeMap<SystemName, JoinHandle<()>>);

impl Drop for Followers {
    fn drop(&mut self) {
        for follower in self.0.values() {
            follower.abort();
        }
    }
}

impl Alerts {
    /// Follows the sources that an enabled definition watches, as definitions change. This never ends
    /// by itself and may be dropped at any time: the next follower continues at the stored positions.
    pub async fn follow(&self) {
        let mut changes = self.0.registry.subscribe();
        let mut followers = Followers::default();
        if let Err(error) = self.refresh().await {
            tracing::warn!(%error, "reading the alert definitions failed; it will be retried");
        }
        loop {
            changes.mark_unchanged();
            if let Err(error) = self.adjust(&mut followers).await {
                tracing::warn!(%error, "following a source of alerts failed; it will be retried");
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep(ADJUST_EVERY) => {}
            }
        }
    }

    async fn adjust(&self, followers: &mut Followers) -> Result<(), AlertsError> {
        let Some(reactions) = &self.0.reactions else {
            return Ok(());
        };
        let snapshot = self.0.registry.now();
        for source in &self.0.sources {
            let system = source.system();
            let is_followed = followers
                .0
                .get(system)
                .is_some_and(|task| !task.is_finished());
            if snapshot.needs(system) == is_followed {
                continue;
            }
            if let Some(follower) = followers.0.remove(system) {
                follower.abort();
                // The next follower starts after this one has ended.
                let _ = follower.await;
            }
            if !is_followed {
                self.ensure_stream(source).await?;
                let reaction = AlertReaction::new(self.clone(), source.clone());
                let reactions = reactions.clone();
                let follower =
                    tokio::spawn(async move { reactions.follow(Arc::new(reaction)).await });
                followers.0.insert(system.clone(), follower);
            }
        }
        Ok(())
    }
}
