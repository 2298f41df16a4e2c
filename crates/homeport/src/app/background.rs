//! Background work of the server: workers of records, removals, push, rules and alerts, and reactions to changes.

use std::sync::Arc;

use anyhow::Context as _;
use homeport_server::{AppState, Expo, SignedRequests, drain_latencies_until};
use homeport_store::SystemClock;
use homeport_systems::chargers::DailyReaction;
use homeport_systems::push::Worker;
use homeport_systems::reactions::{Reaction, Reactions};
use homeport_systems::records::GroupReaction;
use homeport_systems::removal::Removals;
use homeport_systems::rules::RequestWorker;
use tokio::task::{JoinHandle, JoinSet};

use crate::app::alerts;
use crate::app::tasks::Tasks;
use crate::config::Settings;
use crate::storage::backend::Backend;
use crate::storage::secrets;

/// Completes when the server stops.
pub(crate) type BoxFuture = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// The running background tasks.
pub(crate) struct Background {
    records: JoinHandle<()>,
    removals: JoinHandle<()>,
    push: JoinHandle<()>,
    rule_changes: JoinHandle<()>,
    rule_requests: JoinHandle<()>,
    alerts: JoinHandle<()>,
    metrics: JoinHandle<()>,
    // Aborted at the end: positions are stored, so the next start resumes from them.
    reactions: JoinSet<()>,
}

impl Background {
    /// Starts the tasks that this store supports. Workers end when `stop` completes.
    pub(crate) fn start(
        backend: &Backend,
        state: &AppState,
        settings: &Settings,
        tasks: &Tasks,
        stop: impl Fn() -> BoxFuture,
    ) -> anyhow::Result<Self> {
        let records = state.records.clone();
        let (removal_store, removal_clock) = (Arc::clone(&backend.store), backend.removal_clock());
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
        let given = settings.rules.http_secret.as_ref();
        let secret = secrets::rules_http_secret(given, &settings.data.dir)?;
        let requests = SignedRequests::new(&secret.text, settings.rules.http_private)
            .context("rules.http_secret")?;
        let requests = RequestWorker::new(
            state.rules.clone(),
            Arc::new(requests),
            Arc::new(state.broker.clone()),
        );
        Ok(Self {
            rule_changes: {
                let stop = stop();
                tasks.spawn("rules", async move { rules.refresh_until(stop).await })
            },
            rule_requests: tasks.spawn("rule requests", requests.run_until(stop())),
            records: {
                let stop = stop();
                tasks.spawn("records", async move { records.run_until(stop).await })
            },
            removals: {
                let removals = Removals::new(removal_store, removal_clock);
                let (removals, stop) = (removals.with_alerts(state.alerts.clone()), stop());
                tasks.spawn("removals", async move { removals.run_until(stop).await })
            },
            push: tasks.spawn("push", push.run_until(stop())),
            alerts: tasks.spawn("alerts", alerts.run_until(stop())),
            metrics: tasks.spawn(
                "metrics",
                drain_latencies_until(state.metrics.clone(), stop()),
            ),
            reactions,
        })
    }

    /// Aborts reactions, and waits for workers to end.
    pub(crate) async fn end(mut self) -> anyhow::Result<()> {
        self.reactions.shutdown().await;
        self.records
            .await
            .context("waiting for the record store's background work to end")?;
        self.removals
            .await
            .context("waiting for the removal of devices to end")?;
        self.rule_changes
            .await
            .context("waiting for the reload of rules to end")?;
        self.rule_requests
            .await
            .context("waiting for the worker of rule requests to end")?;
        self.push
            .await
            .context("waiting for the push worker to end")?;
        self.alerts
            .await
            .context("waiting for the alert worker to end")?;
        self.metrics
            .await
            .context("waiting for the metrics task to end")
    }
}

fn all_reactions(state: &AppState) -> Vec<Arc<dyn Reaction>> {
    vec![
        Arc::new(DailyReaction::new(state.chargers.clone())),
        Arc::new(GroupReaction::new(state.records.clone())),
    ]
}
