//! The catalogue of tables: in memory for every operation, on disk in the catalogue keyspace.

pub(crate) mod jobs;
pub(crate) mod keyspaces;
pub(crate) mod size;
pub(crate) mod spares;
pub(crate) mod table;
pub(crate) mod tables;

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

use homeport_store::StoreError;
use rustc_hash::FxHashMap;

use crate::archive::records::{self, Records};
use crate::archive::table_backups::TableBackup;
use crate::archive::transfers::Transfer;
use crate::catalogue::keyspaces::Keyspaces;
use crate::catalogue::table::{Index, Table, TableRecord};
use crate::changes::streams::{self, StreamId, StreamRecord};
use crate::commit::writer::FIRST_CHANGE;
use crate::error::OpenError;
use crate::storage::layout::TableId;
use crate::storage::vault::{self, Database};

pub(crate) const TABLE_PREFIX: &[u8] = b"table/";
const NEXT_ID_KEY: &[u8] = b"next-table-id";
/// Prefix of the records of keyspaces that no table uses; the next start deletes those keyspaces.
pub(crate) const UNUSED_PREFIX: &[u8] = b"unused/";

/// All tables at one moment; replaced as a whole when one of them changes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Catalogue {
    by_name: BTreeMap<String, Arc<Table>>,
    by_id: FxHashMap<TableId, Arc<Table>>,
    pub(crate) next_id: TableId,
    /// Streams that can be read, including those of deleted tables.
    pub(crate) streams: BTreeMap<StreamId, Arc<StreamRecord>>,
    /// Complete backups of single tables, by id.
    pub(crate) backups: Records<TableBackup>,
    /// Ended exports and imports, by id.
    pub(crate) transfers: Records<Transfer>,
}

impl Catalogue {
    /// Reads the catalogue and opens every table in it.
    pub(crate) fn load(database: &Database, keyspaces: &Keyspaces) -> Result<Self, OpenError> {
        let storage = |error: vault::Error| OpenError::Storage(error.to_string());
        let mut catalogue = Self {
            next_id: 1,
            ..Self::default()
        };
        if let Some(next) = keyspaces.catalogue.get(NEXT_ID_KEY).map_err(storage)? {
            let bytes = next
                .as_ref()
                .try_into()
                .map_err(|_| OpenError::DamagedCatalogue("the next table's id".to_owned()))?;
            catalogue.next_id = TableId::from_be_bytes(bytes);
        }
        for guard in keyspaces.catalogue.prefix(streams::STREAM_PREFIX) {
            let value = guard.value().map_err(storage)?;
            let record: StreamRecord = serde_json::from_slice(&value)
                .map_err(|error| OpenError::DamagedCatalogue(error.to_string()))?;
            catalogue.streams.insert(record.id(), Arc::new(record));
        }
        catalogue.backups = records::load(keyspaces)?;
        catalogue.transfers = records::load(keyspaces)?;
        for guard in keyspaces.catalogue.prefix(TABLE_PREFIX) {
            let value = guard.value().map_err(storage)?;
            let mut record: TableRecord = serde_json::from_slice(&value)
                .map_err(|error| OpenError::DamagedCatalogue(error.to_string()))?;
            streams::add_derived_stream(&mut catalogue, &mut record, FIRST_CHANGE);
            // Opening would create it, and the table would be served without its items.
            if let Some(missing) = record
                .keyspace_names()
                .find(|name| !database.has_keyspace(name))
            {
                return Err(OpenError::DamagedCatalogue(format!(
                    "table {} is in keyspace {missing}, which is missing",
                    record.schema.name
                )));
            }
            let table = open_table(database, record, None).map_err(storage)?;
            catalogue.insert(Arc::new(table));
        }
        Ok(catalogue)
    }

    pub(crate) fn get(&self, name: &str) -> Result<&Arc<Table>, StoreError> {
        self.by_name
            .get(name)
            .ok_or_else(|| StoreError::TableNotFound(name.to_owned()))
    }

    pub(crate) fn by_id(&self, id: TableId) -> Option<&Arc<Table>> {
        self.by_id.get(&id)
    }

    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.by_name.values()
    }

    pub(crate) fn insert(&mut self, table: Arc<Table>) {
        self.by_id.insert(table.id(), Arc::clone(&table));
        self.by_name.insert(table.name().to_owned(), table);
    }

    pub(crate) fn remove(&mut self, name: &str) -> Option<Arc<Table>> {
        let table = self.by_name.remove(name)?;
        self.by_id.remove(&table.id());
        Some(table)
    }

    /// Whether a keyspace belongs to a table in the catalogue.
    pub(crate) fn uses_keyspace(&self, name: &str) -> bool {
        self.tables()
            .any(|table| table.record.keyspace_names().any(|used| used == name))
    }
}

/// Opens or creates the keyspaces of a table, sharing those that the previous version of the table has open.
pub(crate) fn open_table(
    database: &Database,
    record: TableRecord,
    before: Option<&Table>,
) -> Result<Table, vault::Error> {
    let open = |name: String| match before.and_then(|before| before.open_keyspace(&name)) {
        Some(keyspace) => Ok(Arc::clone(keyspace)),
        None => database.keyspace(&name).map(Arc::new),
    };
    let items = open(record.keyspace_name())?;
    let indexes = record
        .schema
        .indexes
        .iter()
        .zip(&record.indexes)
        .zip(record.index_keyspace_names())
        .map(|((schema, index), keyspace)| {
            Ok(Index {
                schema: Arc::new(schema.clone()),
                state: index.state,
                entries: open(keyspace)?,
            })
        })
        .collect::<Result<_, vault::Error>>()?;
    Ok(Table {
        key: Arc::new(record.schema.key.clone()),
        items,
        indexes,
        record,
    })
}

/// The key and value of a table's record in the catalogue keyspace.
pub(crate) fn table_entry(record: &TableRecord) -> (Vec<u8>, Vec<u8>) {
    let value = serde_json::to_vec(record).expect("a table record has string keys only");
    (table_key(&record.schema.name), value)
}

pub(crate) fn table_key(name: &str) -> Vec<u8> {
    [TABLE_PREFIX, name.as_bytes()].concat()
}

/// The key of the record that no table uses a keyspace.
pub(crate) fn unused_key(keyspace: &str) -> Vec<u8> {
    [UNUSED_PREFIX, keyspace.as_bytes()].concat()
}

pub(crate) fn next_id_entry(next_id: TableId) -> (Vec<u8>, Vec<u8>) {
    (NEXT_ID_KEY.to_vec(), next_id.to_be_bytes().to_vec())
}

/// The current catalogue. Only the committer replaces it.
#[derive(Debug, Default)]
pub(crate) struct SharedCatalogue(RwLock<Arc<Catalogue>>);

impl SharedCatalogue {
    pub(crate) fn new(catalogue: Catalogue) -> Self {
        Self(RwLock::new(Arc::new(catalogue)))
    }

    pub(crate) fn now(&self) -> Arc<Catalogue> {
        let guard = self
            .0
            .read()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        Arc::clone(&guard)
    }

    pub(crate) fn table(&self, name: &str) -> Result<Arc<Table>, StoreError> {
        let guard = self
            .0
            .read()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        guard.get(name).cloned()
    }

    pub(crate) fn replace(&self, catalogue: Catalogue) {
        let mut guard = self
            .0
            .write()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        *guard = Arc::new(catalogue);
    }
}
