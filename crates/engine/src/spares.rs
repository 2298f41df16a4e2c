//! Keyspaces of deleted tables and indexes, kept for the next ones.
//!
//! The key-value store forgets a keyspace only when it is opened again: until then each one that is
//! made and deleted leaves entries, versions and open files in its list of keyspaces. Who makes and
//! deletes tables all day (tests do) would pay for all of them, so small keyspaces are emptied and
//! used again.

use std::sync::Arc;

use homeport_store::StoreError;

use crate::committer::Committer;
use crate::error::unavailable;
use crate::table::TableRecord;
use crate::vault::{self, Keyspace, UserKey};

/// Keyspaces that are kept.
const SPARES_MAX: usize = 64;
/// What a keyspace may hold and still be emptied rather than deleted.
const ENTRIES_MAX: usize = 1000;
const BYTES_MAX: usize = 1024 * 1024;
/// Counting also what was removed and overwritten: emptying has to pass over all of it.
const TRACES_MAX: usize = 20_000;

/// Keyspaces that no table in the catalogue uses any more. A crash leaves them to the next start,
/// which deletes them.
#[derive(Default)]
pub(crate) struct Spares(Vec<Arc<Keyspace>>);

impl Committer {
    /// Gives up a keyspace that is out of the catalogue: it is kept if it is small, and otherwise
    /// deleted. A failure costs only room, which the next start gives back.
    pub(crate) fn give_up(&mut self, keyspace: Arc<Keyspace>) {
        // IMPORTANT: the commit that failed may have put the table into the catalogue all the same, which is known only
        // when the store has reopened itself.
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
            tracing::warn!(keyspace = name, %error, "cannot drop a keyspace now");
        }
    }

    /// Has a new table use keyspaces that are kept, as far as there are any.
    pub(crate) fn furnish(&mut self, record: &mut TableRecord) -> Result<(), StoreError> {
        record.keyspace = self.spare()?.map(|spare| spare.name().to_string());
        for index in &mut record.indexes {
            index.keyspace = self.spare()?.map(|spare| spare.name().to_string());
        }
        Ok(())
    }

    /// An empty keyspace, if one is kept that nobody reads any more.
    pub(crate) fn spare(&mut self) -> Result<Option<Arc<Keyspace>>, StoreError> {
        // IMPORTANT: whoever still holds the table that is gone could read the next one's items.
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
    async fn a_keyspace_that_a_reader_still_holds_is_not_used_again() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::default()).unwrap();
        let make = async |name: &str| {
            let schema = TableSchema::new(name, "id", KeyKind::S);
            engine.create_table(schema).await.unwrap();
            engine.shared().catalogue.table(name).unwrap()
        };
        let held = make("old").await;
        let name = held.items.name().to_string();
        // The table's next version shares the keyspace with the one that is held.
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
