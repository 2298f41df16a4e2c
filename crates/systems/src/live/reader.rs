//! One reader of the live feed: a task for each table, and a short queue from the tasks to the reader. A full
//! queue blocks the tasks.

use std::sync::Arc;

use homeport_store::{ChangeFeed, ChangePage, Position, StoreError};
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::task::JoinSet;

use super::position::LivePosition;
use super::{
    BEHIND_MS_MAX, CHANGES_PER_PAGE, FollowedTable, Live, LiveError, LiveFilter, PAGES_WAITING_MAX,
    RETRY, WAIT,
};
use crate::fleet::LiveEntry;

/// An event of the live feed.
#[derive(Debug, Clone, PartialEq)]
pub enum LiveEvent {
    /// Entries, and the position after the last of them. A client that continues from an older position may see
    /// entries twice.
    Entries(Vec<LiveEntry>, LivePosition),
    /// Changes were skipped: they are too old, or there were too many.
    Gap(LivePosition),
}

/// Follows the feed for one client until it is dropped.
#[derive(Debug)]
pub struct LiveReader {
    live: Live,
    filter: LiveFilter,
    position: LivePosition,
    pages: mpsc::Receiver<TablePage>,
    stopping: watch::Receiver<bool>,
    _followers: JoinSet<()>,
    _permit: OwnedSemaphorePermit,
}

/// Changes of one table.
struct TablePage {
    table: Arc<FollowedTable>,
    page: ChangePage,
}

impl LiveReader {
    pub(super) fn start(
        live: &Live,
        filter: LiveFilter,
        position: LivePosition,
        tables: Vec<(Arc<FollowedTable>, Position)>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let (sender, pages) = mpsc::channel(PAGES_WAITING_MAX);
        let mut followers = JoinSet::new();
        for (table, start) in tables {
            if let Some(feed) = &live.0.feed {
                let (feed, sender, live) = (Arc::clone(feed), sender.clone(), live.clone());
                followers.spawn(async move {
                    follow(&live, &*feed, table, start, &sender).await;
                });
            }
        }
        Self {
            live: live.clone(),
            filter,
            position,
            pages,
            stopping: live.0.stopping.subscribe(),
            _followers: followers,
            _permit: permit,
        }
    }

    /// The position after the last event.
    #[must_use]
    pub fn position(&self) -> &LivePosition {
        &self.position
    }

    /// Waits for the next event; `None` when the server stops. It is cancel-safe.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn next(&mut self) -> Result<Option<LiveEvent>, LiveError> {
        loop {
            let page = tokio::select! {
                page = self.pages.recv() => page,
                _ = self.stopping.wait_for(|stopping| *stopping) => None,
            };
            let Some(TablePage { table, page }) = page else {
                return Ok(None);
            };
            let mut entries = self.live.entries(&table, &page).await?;
            entries.retain(|entry| self.filter.wants(entry));
            self.position.set(&table.schema.name, page.next);
            if page.has_gap {
                return Ok(Some(LiveEvent::Gap(self.position.clone())));
            }
            if !entries.is_empty() {
                return Ok(Some(LiveEvent::Entries(entries, self.position.clone())));
            }
        }
    }
}

/// Sends the changes of one table until the receiver is gone.
async fn follow(
    live: &Live,
    feed: &dyn ChangeFeed,
    table: Arc<FollowedTable>,
    mut from: Position,
    sender: &mpsc::Sender<TablePage>,
) {
    loop {
        let page = match next(live, feed, &table.schema.name, &from).await {
            Ok(page) => page,
            Err(error) => {
                tracing::warn!(table = table.schema.name, %error, "reading the live feed failed and will be retried");
                tokio::time::sleep(RETRY).await;
                continue;
            }
        };
        from = page.next.clone();
        if page.changes.is_empty() && !page.has_gap {
            continue;
        }
        let page = TablePage {
            table: Arc::clone(&table),
            page,
        };
        if sender.send(page).await.is_err() {
            return;
        }
    }
}

async fn next(
    live: &Live,
    feed: &dyn ChangeFeed,
    table: &str,
    from: &Position,
) -> Result<ChangePage, StoreError> {
    let page = feed.changes(table, from, CHANGES_PER_PAGE, WAIT).await;
    let skip = match &page {
        Ok(page) => {
            let behind_since = live.0.clock.now_ms().saturating_sub(BEHIND_MS_MAX);
            let last = page.changes.last();
            let is_behind = last.is_some_and(|last| last.at_ms < behind_since);
            page.has_gap || is_behind && page.changes.len() >= CHANGES_PER_PAGE
        }
        // The position belongs to another store.
        Err(StoreError::Invalid(_)) => true,
        Err(_) => false,
    };
    if !skip {
        return page;
    }
    Ok(ChangePage {
        changes: Vec::new(),
        next: feed.end(table).await?,
        has_gap: true,
    })
}
