//! Exports a table, in its current or an earlier state, to a folder in DynamoDB's export format:
//! ```text
//! _started
//! data/<n>.json.gz      lines of {"Item":{…}}
//! manifest-files.json   a line for each data file, and manifest-files.md5
//! manifest-summary.json what was exported, and manifest-summary.md5
//! ```
//! The summary is written last: an export without it is incomplete.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homeport_item::schema::TableSchema;
use md5::{Digest as _, Md5};

use crate::archive::backup::BackupError;
use crate::archive::copying;
use crate::archive::data_files::{self, DataFileWriter};
use crate::archive::folder::Folder;
use crate::archive::history::{self, PastState, RestorePoint};
use crate::archive::restoring::{self, RestoreError, TableFiller};
use crate::archive::transfers::{self, Transfer, TransferKind};
use crate::archive::unfinished::io;
use crate::catalogue::table::Table;
use crate::error::unavailable;
use crate::shared::{Shared, stopped};
use crate::storage::record::Record;
use crate::storage::vault::{UserKey, UserValue};

/// The destination of an export, and its descriptions.
pub struct ExportTarget {
    /// The directory that the export is written to.
    pub bucket: Folder,
    /// The path below the bucket in which the export creates a folder named after its id. Manifests name data
    /// files with it.
    pub key_prefix: String,
    /// Opaque notes that a protocol stores with the export.
    pub notes: String,
    /// Creates the summary of a successful export.
    pub summary: Box<Summarise>,
}

/// Creates the text of an export's summary.
pub type Summarise = dyn FnOnce(&Transfer) -> Vec<u8> + Send;

/// Starts an export of `source` as it was at `point`.
pub(crate) async fn begin(
    shared: &Shared,
    source: String,
    point: RestorePoint,
    target: ExportTarget,
) -> Result<Arc<Transfer>, RestoreError> {
    shared
        .exclusive(move |committer| {
            let shared = Arc::clone(&committer.shared);
            if transfers::is_full(&shared) {
                return Err(RestoreError::TooMany);
            }
            let past = history::open(committer, &source, point)?;
            // Later changes are undone in a table that is visible to nobody else.
            let scratch = if past.has_later_changes()? {
                let schema = TableSchema {
                    name: source,
                    indexes: Vec::new(),
                    ttl_attribute: None,
                    stream: None,
                    ..past.table.schema().clone()
                };
                Some(restoring::unlisted_table(committer, schema, String::new())?)
            } else {
                None
            };
            let notes = target.notes.clone();
            let export = transfers::begin(
                &shared,
                TransferKind::Export,
                &past.table,
                past.at_ms,
                notes,
            );
            let export = Arc::new(export);
            shared
                .transfers
                .lock()
                .insert(export.id.clone(), Arc::clone(&export));
            let (worker, begun) = (Arc::clone(&shared), Arc::clone(&export));
            let spawned = shared.spawn_job("homeport-export", move || {
                run(&worker, &begun, past, scratch, target);
            });
            if let Err(error) = spawned {
                shared.transfers.remove(&export.id);
                return Err(error.into());
            }
            Ok(export)
        })
        .await
        .map_err(|_| RestoreError::Store(stopped()))?
}

fn run(
    shared: &Arc<Shared>,
    export: &Transfer,
    past: PastState,
    scratch: Option<Arc<Table>>,
    target: ExportTarget,
) {
    let written = match &scratch {
        None => write(shared, export, &past, None, target),
        Some(scratch) => {
            let mut filler = TableFiller::new(shared, Arc::clone(scratch));
            filler
                .fill_with(&past)
                .and_then(|()| write(shared, export, &past, Some(scratch), target))
        }
    };
    if shared.stopping.load(Ordering::Acquire) {
        return;
    }
    let ended = written.unwrap_or_else(|error| {
        tracing::error!(
            export = export.id,
            error = &error as &dyn std::error::Error,
            "the export of a table failed"
        );
        Transfer {
            ended_at_ms: Some(shared.options.clock.now_ms()),
            failure: Some(error.to_string()),
            ..export.clone()
        }
    });
    let id = export.id.clone();
    let kept = shared
        .exclusive(move |committer| {
            if let Some(scratch) = scratch {
                committer.retire_keyspace(Arc::clone(&scratch.items));
            }
            transfers::record_transfer(committer, ended)
        })
        .blocking_recv();
    if !matches!(kept, Ok(Ok(()))) {
        shared.transfers.remove(&id);
    }
}

/// Writes the items that had not expired at the export's moment: those of `scratch`, in which later changes
/// were undone, or those of the table itself.
fn write(
    shared: &Shared,
    export: &Transfer,
    past: &PastState,
    scratch: Option<&Table>,
    target: ExportTarget,
) -> Result<Transfer, RestoreError> {
    let key_prefix = format!("{}{}", target.key_prefix, export.id);
    let folder = make_folders(&target.bucket, &key_prefix)?;
    let data = make_folders(&folder, "data")?;
    write_file(&folder, "_started", b"")?;
    let mut ended = export.clone();
    let mut files = DataFileWriter::new(shared, key_prefix.clone(), true, |name, bytes| {
        write_file(&data, name, bytes)
    });
    let table = scratch.unwrap_or(&past.table);
    let mut take = |key: UserKey, value: UserValue| {
        if past.had_expired(&key, &value)? {
            return Ok(());
        }
        let item = Record::new(&table.key, &key, &value)
            .and_then(Record::to_item)
            .map_err(unavailable)?;
        files.add(&item)?;
        ended.items += 1;
        ended.item_bytes += item.size() as u64;
        Ok::<_, RestoreError>(())
    };
    match scratch {
        Some(scratch) => copying::read_unchanged(shared, &scratch.items, &mut take)?,
        None => past.copy.read(table, &mut take)?,
    }
    // A table without items gets one data file without lines, as in DynamoDB's exports.
    let files = files.finish(true)?;
    ended.ended_at_ms = Some(shared.options.clock.now_ms());
    write_with_checksum(&folder, "manifest-files", &data_files::manifest(&files)?)?;
    let summary = (target.summary)(&ended);
    write_with_checksum(&folder, "manifest-summary", &summary)?;
    for folder in [&data, &folder] {
        folder.sync().map_err(io(Path::new(&key_prefix)))?;
    }
    Ok(ended)
}

fn write_with_checksum(folder: &Folder, name: &str, text: &[u8]) -> Result<(), BackupError> {
    let checksum = STANDARD.encode(Md5::digest(text));
    write_file(folder, &format!("{name}.md5"), checksum.as_bytes())?;
    write_file(folder, &format!("{name}.json"), text)
}

/// Opens the folder at a path below another one, creating missing folders.
fn make_folders(below: &Folder, path: &str) -> Result<Folder, BackupError> {
    let mut folder = below.clone();
    for name in path.split('/') {
        folder = folder.make_folder(name).map_err(io(Path::new(path)))?;
    }
    Ok(folder)
}

fn write_file(folder: &Folder, name: &str, bytes: &[u8]) -> Result<(), BackupError> {
    folder
        .create_file(name)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .map_err(io(Path::new(name)))
}

impl std::fmt::Debug for ExportTarget {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ExportTarget")
            .field("key_prefix", &self.key_prefix)
            .finish_non_exhaustive()
    }
}
