//! Work that goes on beside requests: the record store's, push's, that of rules and alerts, and reactions on
//! changes.

use std::sync::Arc;

use anyhow::Context as _;
use homeport_server::{AppState, Expo, SignedRequests};
use homeport_store::SystemClock;
use homeport_systems::chargers::DailyReaction;
use homeport_systems::push::Worker;
use homeport_systems::reactions::{Reaction, Reactions};
use homeport_systems::rules::RequestWorker;
use tokio::task::{JoinHandle, JoinSet};

use crate::alerts;
use crate::backend::Backend;
use crate::config::Settings;
use crate::secrets;
use crate::tasks::Tasks;

/// Ends when everything is to stop.
pub(crate) type BoxFuture = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// All of it, as long as it runs.
pub(crate) struct Background {
    records: JoinHandle<()>,
    push: JoinHandle<()>,
    rule_changes: JoinHandle<()>,
    rule_requests: JoinHandle<()>,
    alerts: JoinHandle<()>,
    // Dropped while they run: whoever follows next goes on from their positions.
    reactions: JoinSet<()>,
}

impl Background {
    /// Starts everything that the store allows. `stop` ends what has to come to an end by itself.
    pub(crate) fn start(
        backend: &Backend,
        state: &AppState,
        settings: &Settings,
        tasks: &Tasks,
        stop: impl Fn() -> BoxFuture,
    ) -> anyhow::Result<Self> {
        let records = state.records.clone();
        let expo = Expo::new(
            settings.push.expo_url.to_string(),
            (settings.push.expo_access_token.as_ref()).map(|token| token.reveal().to_owned()),
        );
        let push = Worker::new(state.push.clone(), Arc::new(expo));
        let alerts = alerts::worker(state, settings)?;
        let mut reactions = JoinSet::new();
        let following = state.alerts.clone();
        reactions.spawn(tasks.watched("alerts", async move { following.follow().await }));
        if let Some(feed) = &backend.feed {
            let following = Reactions::new(
                Arc::clone(&backend.store),
                Arc::clone(feed),
                Arc::new(SystemClock),
            );
            for reaction in all_reactions(state) {
                let following = following.clone();
                let follow = async move { following.follow(reaction).await };
                reactions.spawn(tasks.watched("reactions", follow));
            }
        }
        let rules = state.rules.clone();
        let requests = SignedRequests::new(
            &secrets::rules_http_secret(settings)?.text,
            settings.rules.http_private,
        );
        let requests = RequestWorker::new(state.rules.clone(), Arc::new(requests));
        Ok(Self {
            rule_changes: {
                let stop = stop();
                tasks.spawn("rules", async move { rules.refresh_until(stop).await })
            },
            rule_requests: tasks.spawn("requests of rules", requests.run_until(stop())),
            records: {
                let stop = stop();
                tasks.spawn("records", async move { records.run_until(stop).await })
            },
            push: tasks.spawn("push", push.run_until(stop())),
            alerts: tasks.spawn("alerts", alerts.run_until(stop())),
            reactions,
        })
    }

    /// Waits for what ends by itself and ends the rest.
    pub(crate) async fn end(mut self) -> anyhow::Result<()> {
        self.reactions.shutdown().await;
        self.records
            .await
            .context("ending the record store's background work")?;
        self.rule_changes
            .await
            .context("ending what follows changes of rules")?;
        self.rule_requests
            .await
            .context("ending the requests of rules")?;
        self.push.await.context("ending push's worker")?;
        self.alerts.await.context("ending the worker of alerts")
    }
}

fn all_reactions(state: &AppState) -> Vec<Arc<dyn Reaction>> {
    vec![Arc::new(DailyReaction::new(state.chargers.clone()))]
}
