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
        let end = self.next_change();
        if from > end {
            // The log of another store, or of this one before it was made anew from a backup.
            return Ok(ChangePage {
                changes: Vec::new(),
                next: position(end),
                has_gap: true,
            });
        }
        let mut page = self.read_changes(table, from, limit).await?;
        if page.changes.is_empty() && page.trimmed_to.is_none() {
            // Whether there is something for this table shows when it is read again.
            let _ = tokio::time::timeout(wait, self.wait_for_changes(page.next)).await;
            page = self.read_changes(table, page.next, limit).await?;
        }
        // The end of a log without any change is 0, from where the log itself reads what it still has.
        let has_gap = page.trimmed_to.is_some() || (from == 0 && self.has_trimmed(table)?);
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
