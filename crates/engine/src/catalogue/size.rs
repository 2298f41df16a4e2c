//! The sizes of tables and indexes.

use homeport_store::StoreError;

use crate::catalogue::table::{DataSize, Table, TableSize};
use crate::error::unavailable;
use crate::shared::Shared;
use crate::storage::record;
use crate::storage::vault::{Keyspace, Snapshot};

/// Keyspaces with more entries than this are estimated, because counting reads every entry.
const COUNTED_ENTRIES_MAX: usize = 10_000;

pub(crate) fn of_table(shared: &Shared, table: &Table) -> Result<TableSize, StoreError> {
    let snapshot = shared.database.snapshot();
    Ok(TableSize {
        table: of_keyspace(&snapshot, &table.items)?,
        indexes: table
            .indexes
            .iter()
            .map(|index| of_keyspace(&snapshot, &index.entries))
            .collect::<Result<_, _>>()?,
    })
}

/// Expired items that are not deleted yet count, as they do in DynamoDB.
fn of_keyspace(snapshot: &Snapshot, keyspace: &Keyspace) -> Result<DataSize, StoreError> {
    if keyspace.approximate_len() > COUNTED_ENTRIES_MAX {
        return Ok(DataSize {
            items: keyspace.approximate_len() as u64,
            bytes: keyspace.disk_space(),
        });
    }
    let mut size = DataSize::default();
    for guard in snapshot.iter(keyspace) {
        let value = guard.value().map_err(unavailable)?;
        size.items += 1;
        size.bytes += record::size_of(&value).map_err(unavailable)? as u64;
    }
    Ok(size)
}
