//! Reactions: what happens because data changed, such as daily statistics and alerts.
//!
//! Each reaction follows the changes of one table from a position that is kept in a table of its
//! own. A change is handed over at least once, and again after a crash, so a reaction's effect must
//! be the same however often it sees a change. It never sees the changes of one item out of order.

mod positions;
pub mod schema;
mod status;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use homeport_store::{Change, ChangeFeed, Clock, Position, Store, StoreError};

use positions::Positions;
pub use status::{ReactionStatus, StatusBoard};

/// Changes that are handed over at one time.
pub const CHANGES_PER_PAGE_MAX: usize = 500;
/// How long a quiet feed is waited on before it is asked again.
const WAIT: Duration = Duration::from_secs(5);
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LONGEST: Duration = Duration::from_secs(30);

/// Something that happens because the items of a table changed.
#[async_trait]
pub trait Reaction: Send + Sync + 'static {
    /// Under which its position is kept; never changed.
    fn name(&self) -> &'static str;

    /// The table whose changes it follows, which must have a stream.
    fn table(&self) -> &str;

    /// Does what these changes ask for. They may have been seen before.
    ///
    /// # Errors
    /// Any failure: the same changes are handed over again, after a while.
    async fn apply(&self, changes: &[Change]) -> Result<(), ReactionError>;

    /// Makes everything right from the table itself: before the first change is followed, and when
    /// changes are gone that were not seen.
    ///
    /// # Errors
    /// Any failure: it is tried again, after a while.
    async fn start_over(&self) -> Result<(), ReactionError>;
}

/// Why a reaction could not do its work now.
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

/// Follows changes on behalf of reactions.
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

    /// How far each reaction is.
    #[must_use]
    pub fn status(&self) -> Arc<StatusBoard> {
        Arc::clone(&self.status)
    }

    /// Lets a reaction follow its table. This never ends by itself, and may be dropped at any time:
    /// whoever follows next takes up where the position stands.
    pub async fn follow(&self, reaction: Arc<dyn Reaction>) {
        let mut retry = RETRY_FIRST;
        let mut from = None;
        loop {
            match self.step(&*reaction, &mut from, WAIT).await {
                Ok(()) => retry = RETRY_FIRST,
                Err(error) => {
                    tracing::warn!(reaction = reaction.name(), %error, "a reaction failed and will be tried again");
                    self.status.failed(reaction.name(), &error);
                    tokio::time::sleep(retry).await;
                    retry = (retry * 2).min(RETRY_LONGEST);
                }
            }
        }
    }

    /// Lets a reaction handle all changes there are now.
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

    /// Has a reaction begin behind the newest change there is now, wherever it stood: it was not
    /// needed until now, and what is stored from now on is to be seen.
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

    /// Handles one page behind `from`, which is looked up unless it is known, and moves it on.
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
            Ok(page) if page.has_gap => Some("changes are gone that were not seen"),
            // The table of positions came with the data of another kind of store.
            Err(StoreError::Invalid(_)) => Some("the position is not one of this store"),
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
            // IMPORTANT: only behind what has been done, so that a crash repeats changes and loses none.
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
        // IMPORTANT: taken before the table is looked at, so that no change falls between the two.
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
