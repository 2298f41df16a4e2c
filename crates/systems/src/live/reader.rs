//! One reader of the live feed: a task for each table, and a short queue between them and the reader.
//! Full, it stops the tasks: they read on when there is room.

use std::sync::Arc;

use homeport_store::{ChangeFeed, ChangePage, Position, StoreError};
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::task::JoinSet;

use super::position::LivePosition;
use super::{
    BEHIND_MS_MAX, CHANGES_PER_PAGE, Live, LiveError, LiveFilter, PAGES_WAITING_MAX, RETRY, WAIT,
};
use crate::fleet::{Followed, LiveEntry};

/// What a reader gets.
#[derive(Debug, Clone, PartialEq)]
pub enum LiveEvent {
    /// Things that happened, and where the feed goes on behind the last of them. Whoever goes on
    /// from an older position may see some again.
    Entries(Vec<LiveEntry>, LivePosition),
    /// Changes are gone that were not shown: too old, or too many to keep up with.
    Gap(LivePosition),
}

/// Follows the feed for one client; dropped, it follows no more.
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
#[derive(Debug)]
struct TablePage {
    followed: Followed,
    table: Arc<str>,
    page: ChangePage,
}

impl LiveReader {
    pub(super) fn start(
        live: &Live,
        filter: LiveFilter,
        position: LivePosition,
        tables: Vec<(Followed, String, Position)>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let (sender, pages) = mpsc::channel(PAGES_WAITING_MAX);
        let mut followers = JoinSet::new();
        for (followed, table, start) in tables {
            if let Some(feed) = &live.0.feed {
                let (feed, sender, live) = (Arc::clone(feed), sender.clone(), live.clone());
                followers.spawn(async move {
                    follow(&live, &*feed, followed, table.into(), start, &sender).await;
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

    /// Where the reader stands.
    #[must_use]
    pub fn position(&self) -> &LivePosition {
        &self.position
    }

    /// What happened next. This waits for as long as nothing does; none when the server is going. It
    /// may be dropped and called again.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn next(&mut self) -> Result<Option<LiveEvent>, LiveError> {
        loop {
            let page = tokio::select! {
                page = self.pages.recv() => page,
                _ = self.stopping.wait_for(|stopping| *stopping) => None,
            };
            let Some(TablePage {
                followed,
                table,
                page,
            }) = page
            else {
                return Ok(None);
            };
            let entries = self.entries(followed, &page).await?;
            self.position.set(&table, page.next);
            if page.has_gap {
                return Ok(Some(LiveEvent::Gap(self.position.clone())));
            }
            if !entries.is_empty() {
                return Ok(Some(LiveEvent::Entries(entries, self.position.clone())));
            }
        }
    }

    async fn entries(
        &self,
        followed: Followed,
        page: &ChangePage,
    ) -> Result<Vec<LiveEntry>, LiveError> {
        let ids = match followed {
            Followed::Records => self.live.0.fleet.record_ids().await?,
            _ => None,
        };
        let names = self.live.names();
        let entries = page.changes.iter();
        let entries = entries.filter_map(|change| followed.entry(names, ids.as_deref(), change));
        Ok(entries.filter(|entry| self.filter.wants(entry)).collect())
    }
}

/// Hands over the changes of one table for as long as someone takes them.
async fn follow(
    live: &Live,
    feed: &dyn ChangeFeed,
    followed: Followed,
    table: Arc<str>,
    mut from: Position,
    sender: &mpsc::Sender<TablePage>,
) {
    loop {
        let page = match next(live, feed, &table, &from).await {
            Ok(page) => page,
            Err(error) => {
                tracing::warn!(table = &*table, %error, "the live feed will be read again");
                tokio::time::sleep(RETRY).await;
                continue;
            }
        };
        from = page.next.clone();
        // Nothing happened, and nobody is to be told.
        if page.changes.is_empty() && !page.has_gap {
            continue;
        }
        let page = TablePage {
            followed,
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
        // A position of another store.
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
