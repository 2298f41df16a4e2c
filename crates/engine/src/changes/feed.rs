//! The change log as a `ChangeFeed`: a position is the sequence number to read from.

use std::time::Duration;

use async_trait::async_trait;
use homeport_store::{Change, ChangeFeed, ChangePage, Position, StoreError};

use crate::engine::Engine;
use crate::shared::stopped;

#[async_trait]
impl ChangeFeed for Engine {
    async fn end(&self, table: &str) -> Result<Position, StoreError> {
        // A missing table has no changes to wait for.
        self.table(table)?;
        Ok(position(self.next_change()))
    }

    async fn changes(
        &self,
        table: &str,
        from: &Position,
        limit: usize,
        wait: Duration,
    ) -> Result<ChangePage, StoreError> {
        let from: u64 = from.as_str().parse().map_err(|_| {
            StoreError::invalid(format!(
                "{:?} is not a position in this change log",
                from.as_str()
            ))
        })?;
        let mut end = self.next_change();
        if from > end {
            // A group becomes readable a moment before its end is published.
            end = self.readable_end()?;
        }
        if from > end {
            // The position belongs to the log of another store, or of this one before it was restored.
            return Ok(ChangePage {
                changes: Vec::new(),
                next: position(end),
                has_gap: true,
            });
        }
        let mut page = self.read_changes(table, from, limit).await?;
        if page.changes.is_empty() && page.trimmed_to.is_none() && !page.has_damage {
            // The reread shows whether the new changes include some of this table.
            let _ = tokio::time::timeout(wait, self.wait_for_changes(page.next)).await;
            page = self.read_changes(table, page.next, limit).await?;
        }
        // Position 0 is the end of a log without changes, and reading from it returns whatever is left.
        let has_gap = page.trimmed_to.is_some()
            || page.has_damage
            || (from == 0 && self.has_trimmed(table)?);
        Ok(ChangePage {
            has_gap,
            next: position(page.next),
            changes: page.changes.into_iter().map(Change::from).collect(),
        })
    }
}

impl Engine {
    async fn read_changes(
        &self,
        table: &str,
        from: u64,
        limit: usize,
    ) -> Result<crate::changes::log::ChangePage, StoreError> {
        let (engine, table) = (self.clone(), table.to_owned());
        tokio::task::spawn_blocking(move || engine.changes(&table, from, limit))
            .await
            .map_err(|_| stopped())?
    }
}

fn position(sequence: u64) -> Position {
    Position::new(sequence.to_string())
}

#[cfg(test)]
mod tests {
    use homeport_item::schema::{StreamView, TableSchema};
    use homeport_item::{Item, KeyKind};
    use homeport_store::{Put, Store as _};

    use super::*;
    use crate::options::Options;

    #[tokio::test]
    async fn reading_before_publication_reports_no_gap() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::default()).unwrap();
        for name in ["busy", "quiet"] {
            let mut table = TableSchema::new(name, "id", KeyKind::S);
            table.stream = Some(StreamView::NewImage);
            engine.create_table(table).await.unwrap();
        }
        let before = engine.next_change();
        let put = Put::new("busy", Item::new().with("id", "a"));
        engine.put(put).await.unwrap();
        // The state between a group becoming readable and its end being published.
        engine.shared().last_change.send_replace(before);
        let from = position(before);
        let read = async |from| {
            let page = ChangeFeed::changes(&engine, "quiet", from, 10, Duration::ZERO).await;
            page.unwrap()
        };
        let first = read(&from).await;
        assert_eq!(first.next, position(before + 1));
        assert!(!read(&first.next).await.has_gap);
        // A position of another log.
        assert!(read(&position(before + 2)).await.has_gap);
    }
}
