//! The change log behind the seam of changes: a position is the sequence number to read from.

use std::time::Duration;

use async_trait::async_trait;
use homeport_store::{Change, ChangeFeed, ChangePage, Position, StoreError};

use crate::engine::Engine;
use crate::shared::stopped;

#[async_trait]
impl ChangeFeed for Engine {
    async fn end(&self, table: &str) -> Result<Position, StoreError> {
        // A table that does not exist has no changes to wait for.
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
            StoreError::Invalid(format!("{:?} is no position in this log", from.as_str()))
        })?;
        let mut end = self.next_change();
        if from > end {
            // A group can be read a moment before it is told of.
            end = self.readable_end()?;
        }
        if from > end {
            // The log of another store, or of this one before it was made anew from a backup.
            return Ok(ChangePage {
                changes: Vec::new(),
                next: position(end),
                has_gap: true,
            });
        }
        let mut page = self.read_changes(table, from, limit).await?;
        if page.changes.is_empty() && page.trimmed_to.is_none() && !page.has_damage {
            // Whether there is something for this table shows when it is read again.
            let _ = tokio::time::timeout(wait, self.wait_for_changes(page.next)).await;
            page = self.read_changes(table, page.next, limit).await?;
        }
        // The end of a log without any change is 0, from where the log itself reads what it still has.
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
    ) -> Result<crate::changes::ChangePage, StoreError> {
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
    async fn a_reader_who_is_quicker_than_the_news_of_a_write_finds_no_gap() {
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
        // As between the moment when a group can be read and that when it is told of.
        engine.shared().last_change.send_replace(before);
        let from = position(before);
        let read = async |from| {
            let page = ChangeFeed::changes(&engine, "quiet", from, 10, Duration::ZERO).await;
            page.unwrap()
        };
        let first = read(&from).await;
        assert_eq!(first.next, position(before + 1));
        assert!(!read(&first.next).await.has_gap);
        // Of another log.
        assert!(read(&position(before + 2)).await.has_gap);
    }
}
