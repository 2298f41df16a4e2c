//! How much tables and indexes hold.

use homeport_store::StoreError;

use crate::error::unavailable;
use crate::record;
use crate::shared::Shared;
use crate::table::{Extent, Table, TableExtent};
use crate::vault::{Keyspace, Snapshot};

/// Keyspaces with more entries than this are estimated, since counting reads all of them.
const COUNTED_ENTRIES_MAX: usize = 10_000;

pub(crate) fn of_table(shared: &Shared, table: &Table) -> Result<TableExtent, StoreError> {
    let snapshot = shared.database.snapshot();
    Ok(TableExtent {
        table: of_keyspace(&snapshot, &table.items)?,
        indexes: table
            .indexes
            .iter()
            .map(|index| of_keyspace(&snapshot, &index.entries))
            .collect::<Result<_, _>>()?,
    })
}

/// Items that have expired but are not swept yet count, as they do in DynamoDB.
fn of_keyspace(snapshot: &Snapshot, keyspace: &Keyspace) -> Result<Extent, StoreError> {
    if keyspace.approximate_len() > COUNTED_ENTRIES_MAX {
        return Ok(Extent {
            items: keyspace.approximate_len() as u64,
            bytes: keyspace.disk_space(),
        });
    }
    let mut extent = Extent::default();
    for guard in snapshot.iter(keyspace) {
        let value = guard.value().map_err(unavailable)?;
        extent.items += 1;
        extent.bytes += record::size_of(&value).map_err(unavailable)? as u64;
    }
    Ok(extent)
}
