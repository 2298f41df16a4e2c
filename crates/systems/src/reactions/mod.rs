//! Reactions to changed data, such as daily statistics and alerts.
//!
//! Each reaction follows the changes of one table from a stored position. It gets each change at least
//! once, and again after a crash, so its effect must be idempotent. It never gets the changes of one
//! item out of order.

mod positions;
pub mod schema;
mod status;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use homeport_store::{Change, ChangeFeed, Clock, Position, Store, StoreError};

use positions::Positions;
pub use status::{ReactionStatus, StatusBoard};

/// Changes per call of a reaction.
pub const CHANGES_PER_PAGE_MAX: usize = 500;
/// How long one read of the feed waits for changes.
const WAIT: Duration = Duration::from_secs(5);
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LONGEST: Duration = Duration::from_secs(30);

#[async_trait]
pub trait Reaction: Send + Sync + 'static {
    /// The name under which its position is stored; it must never change.
    fn name(&self) -> &'static str;

    /// The followed table, which must have a stream.
    fn table(&self) -> &str;

    /// Applies changes, which may have been applied before.
    ///
    /// # Errors
    /// Any failure: the same changes are applied again after a pause.
    async fn apply(&self, changes: &[Change]) -> Result<(), ReactionError>;

    /// Rebuilds its state from the table: before the first change, and after changes were lost.
    ///
    /// # Errors
    /// Any failure: it is retried after a pause.
    async fn start_over(&self) -> Result<(), ReactionError>;
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ReactionError(String);

impl ReactionError {
    pub fn new(reason: impl std::fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

impl From<StoreError> for ReactionError {
    fn from(error: StoreError) -> Self {
        Self::new(error)
    }
}

/// Runs reactions on the change feed.
#[derive(Clone)]
pub struct Reactions {
    feed: Arc<dyn ChangeFeed>,
    positions: Positions,
    clock: Arc<dyn Clock>,
    status: Arc<StatusBoard>,
}

impl Reactions {
    #[must_use]
    pub fn new(store: Arc<dyn Store>, feed: Arc<dyn ChangeFeed>, clock: Arc<dyn Clock>) -> Self {
        Self {
            feed,
            positions: Positions::new(store),
            clock,
            status: Arc::default(),
        }
    }

    /// The status of each reaction.
    #[must_use]
    pub fn status(&self) -> Arc<StatusBoard> {
        Arc::clone(&self.status)
    }

    /// Runs a reaction. This never ends by itself and may be dropped at any time: the next run continues
    /// at the stored position.
    pub async fn follow(&self, reaction: Arc<dyn Reaction>) {
        let mut retry = RETRY_FIRST;
        let mut from = None;
        loop {
            match self.step(&*reaction, &mut from, WAIT).await {
                Ok(()) => retry = RETRY_FIRST,
                Err(error) => {
                    tracing::warn!(reaction = reaction.name(), %error, "a reaction failed; it will be retried");
                    self.status.failed(reaction.name(), &error);
                    tokio::time::sleep(retry).await;
                    retry = (retry * 2).min(RETRY_LONGEST);
                }
            }
        }
    }

    /// Runs a reaction until it has applied all current changes.
    ///
    /// # Errors
    /// When the store or the reaction fails.
    pub async fn catch_up(&self, reaction: &dyn Reaction) -> Result<(), ReactionError> {
        let mut from = None;
        loop {
            let before = from.clone();
            self.step(reaction, &mut from, Duration::ZERO).await?;
            if before.is_some() && before == from {
                return Ok(());
            }
        }
    }

    /// Moves a reaction behind the newest change, wherever it was: it was not needed until now, and it
    /// follows everything that is stored from now on.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn begin_at_end(&self, reaction: &dyn Reaction) -> Result<(), ReactionError> {
        let position = self.feed.end(reaction.table()).await?;
        let now_ms = self.clock.now_ms();
        self.positions
            .put(reaction.name(), &position, now_ms)
            .await?;
        Ok(())
    }

    /// Applies one page of changes after `from` and advances it. Without `from`, reads the stored
    /// position.
    async fn step(
        &self,
        reaction: &dyn Reaction,
        from: &mut Option<Position>,
        wait: Duration,
    ) -> Result<(), ReactionError> {
        let position = match from.take() {
            Some(position) => position,
            None => match self.positions.get(reaction.name()).await? {
                Some(position) => position,
                None => self.start_over(reaction).await?,
            },
        };
        let page = self
            .feed
            .changes(reaction.table(), &position, CHANGES_PER_PAGE_MAX, wait)
            .await;
        let problem = match &page {
            Ok(page) if page.has_gap => Some("changes were lost before they were read"),
            // The stored position comes from another kind of store.
            Err(StoreError::Invalid(_)) => Some("the position is of another store"),
            _ => None,
        };
        if let Some(problem) = problem {
            tracing::warn!(reaction = reaction.name(), problem, "starting over");
            *from = Some(self.start_over(reaction).await?);
            return Ok(());
        }
        let page = page?;
        if let Some(last) = page.changes.last() {
            let lag_ms = self.clock.now_ms().saturating_sub(last.at_ms).max(0);
            self.status.behind(reaction.name(), lag_ms);
            reaction.apply(&page.changes).await?;
            // IMPORTANT: only after the changes are applied, so that a crash repeats changes and loses
            // none.
            self.positions
                .put(reaction.name(), &page.next, self.clock.now_ms())
                .await?;
        }
        let is_level = page.changes.len() < CHANGES_PER_PAGE_MAX;
        self.status
            .applied(reaction.name(), page.changes.len(), is_level);
        *from = Some(page.next);
        Ok(())
    }

    async fn start_over(&self, reaction: &dyn Reaction) -> Result<Position, ReactionError> {
        // IMPORTANT: read before the table, so that no change is missed in between.
        let position = self.feed.end(reaction.table()).await?;
        reaction.start_over().await?;
        self.positions
            .put(reaction.name(), &position, self.clock.now_ms())
            .await?;
        self.status.applied(reaction.name(), 0, true);
        Ok(position)
    }
}

impl std::fmt::Debug for Reactions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Reactions").finish_non_exhaustive()
    }
}
