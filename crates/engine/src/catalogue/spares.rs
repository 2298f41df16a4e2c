//! Spare keyspaces: those of deleted tables and indexes, kept for reuse by new ones.
//!
//! The key-value store only forgets a deleted keyspace when it is reopened. Until then, each keyspace that is
//! created and deleted leaves entries, versions and open files in its list of keyspaces. To bound this for
//! workloads that create and delete many tables, such as tests, small keyspaces are emptied and reused.

use std::sync::Arc;

use homeport_store::StoreError;

use crate::catalogue::table::TableRecord;
use crate::commit::committer::Committer;
use crate::error::unavailable;
use crate::storage::vault::{self, Keyspace, UserKey};

/// The number of spare keyspaces to keep.
const SPARES_MAX: usize = 64;
/// Larger keyspaces are deleted instead of emptied.
const ENTRIES_MAX: usize = 1000;
const BYTES_MAX: usize = 1024 * 1024;
/// Like `ENTRIES_MAX`, but including deleted and overwritten entries, which emptying has to read past.
const TRACES_MAX: usize = 20_000;

/// Keyspaces that no table in the catalogue uses. After a crash, the next start deletes them.
#[derive(Default)]
pub(crate) struct Spares(Vec<Arc<Keyspace>>);

impl Committer {
    /// Retires a keyspace that is no longer in the catalogue: a small one is kept as a spare, others are
    /// deleted. A failure only wastes disk space until the next start.
    pub(crate) fn retire_keyspace(&mut self, keyspace: Arc<Keyspace>) {
        // IMPORTANT: the failed commit may still have put the table into the catalogue; this is only known
        // once the store has reopened.
        let is_in_doubt = self.shared.latch.check().is_err();
        if is_in_doubt || self.shared.catalogue.now().uses_keyspace(keyspace.name()) {
            return;
        }
        if self.spares.0.len() < SPARES_MAX && is_small(&keyspace) {
            self.spares.0.push(keyspace);
            return;
        }
        let keyspace = Keyspace::clone(&keyspace);
        let name = keyspace.name().to_string();
        if let Err(error) = self.shared.delete_keyspace(keyspace) {
            tracing::warn!(keyspace = name, %error, "cannot delete a keyspace now");
        }
    }

    /// Assigns spare keyspaces to a new table, as far as there are any.
    pub(crate) fn assign_spare_keyspaces(
        &mut self,
        record: &mut TableRecord,
    ) -> Result<(), StoreError> {
        record.keyspace = self.take_spare()?.map(|spare| spare.name().to_string());
        for index in &mut record.indexes {
            index.keyspace = self.take_spare()?.map(|spare| spare.name().to_string());
        }
        Ok(())
    }

    /// Takes a spare keyspace that no reader holds, and empties it.
    pub(crate) fn take_spare(&mut self) -> Result<Option<Arc<Keyspace>>, StoreError> {
        // IMPORTANT: a reader that still holds the deleted table could read the new table's items.
        let free = |keyspace: &Arc<Keyspace>| Arc::strong_count(keyspace) == 1;
        let Some(at) = self.spares.0.iter().position(free) else {
            return Ok(None);
        };
        let keyspace = self.spares.0.swap_remove(at);
        let keys: Vec<UserKey> = keyspace
            .iter()
            .map(|guard| guard.key())
            .collect::<Result<_, vault::Error>>()
            .map_err(unavailable)?;
        self.write(|group| {
            for key in keys {
                group.remove(&keyspace, key);
            }
            Ok(())
        })?;
        Ok(Some(keyspace))
    }
}

fn is_small(keyspace: &Keyspace) -> bool {
    if keyspace.approximate_len() > TRACES_MAX {
        return false;
    }
    let mut bytes = 0;
    for (at, guard) in keyspace.iter().enumerate() {
        let Ok((key, value)) = guard.into_inner() else {
            return false;
        };
        bytes += key.len() + value.len();
        if at == ENTRIES_MAX || bytes > BYTES_MAX {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use homeport_item::KeyKind;
    use homeport_item::schema::TableSchema;

    use crate::engine::Engine;
    use crate::options::Options;

    #[tokio::test]
    async fn keyspace_held_by_a_reader_is_not_reused() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::default()).unwrap();
        let make = async |name: &str| {
            let schema = TableSchema::new(name, "id", KeyKind::S);
            engine.create_table(schema).await.unwrap();
            engine.shared().catalogue.table(name).unwrap()
        };
        let held = make("old").await;
        let name = held.items.name().to_string();
        // The table's next version shares the keyspace with the version that is held.
        engine.set_ttl("old", Some("at")).await.unwrap();
        engine.wait_until_built("old").await.unwrap();
        engine.delete_table("old").await.unwrap();
        let beside = make("beside").await;
        assert_ne!(beside.items.name().to_string(), name);
        assert_eq!(Arc::strong_count(&held), 1);
        drop(held);
        let after = make("after").await;
        assert_eq!(after.items.name().to_string(), name);
    }
}
