//! Writing a table, as it is or as it was, to a folder in DynamoDB's export format:
//! ```text
//! _started
//! data/<n>.json.gz      lines of {"Item":{…}}
//! manifest-files.json   a line for each data file, and manifest-files.md5
//! manifest-summary.json what was exported, and manifest-summary.md5
//! ```
//! The summary is written last: an export without it is not complete.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homeport_item::schema::TableSchema;
use md5::{Digest as _, Md5};
use serde::Serialize;

use crate::backup::{BackupError, DATA_FILE_BYTES, DataWriter};
use crate::error::unavailable;
use crate::history::{self, Past, RestorePoint};
use crate::record::Record;
use crate::restoring::{self, Filler, RestoreError};
use crate::shared::{Shared, stopped};
use crate::table::Table;
use crate::transfers::{self, Transfer, TransferKind};
use crate::vault::Snapshot;

/// Where an export goes, and what is to be said about it.
pub struct ExportTarget {
    /// The folder in which the export makes one of its own, named by its id.
    pub folder: PathBuf,
    /// What the names of data files begin with in the manifest; the export's id follows.
    pub key_prefix: String,
    /// What a protocol keeps with the export.
    pub notes: String,
    /// Makes the text of the summary for an export that has ended well.
    pub summary: Box<Summarise>,
}

/// Makes the text of an export's summary.
pub type Summarise = dyn FnOnce(&Transfer) -> Vec<u8> + Send;

/// A line of `manifest-files.json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExportedFile {
    item_count: u64,
    md5_checksum: String,
    etag: String,
    data_file_s3_key: String,
}

/// Begins to export `source` as it was at `point`.
pub(crate) async fn begin(
    shared: &Shared,
    source: String,
    point: RestorePoint,
    target: ExportTarget,
) -> Result<Arc<Transfer>, RestoreError> {
    shared
        .exclusive(move |committer| {
            let shared = Arc::clone(&committer.shared);
            if shared.transfers.is_full() {
                return Err(RestoreError::TooMany);
            }
            let past = history::open(&shared, &source, point)?;
            // What has to be undone is undone in a table that nobody else ever sees.
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
            shared.transfers.add(Arc::clone(&export));
            let (worker, begun) = (Arc::clone(&shared), Arc::clone(&export));
            let spawned = std::thread::Builder::new()
                .name("homeport-export".to_owned())
                .spawn(move || run(&worker, &begun, past, scratch, target));
            match spawned {
                Ok(handle) => shared.keep_job(handle),
                Err(error) => {
                    shared.transfers.remove(&export.id);
                    return Err(unavailable(error).into());
                }
            }
            Ok(export)
        })
        .await
        .map_err(|_| RestoreError::Store(stopped()))?
}

fn run(
    shared: &Arc<Shared>,
    export: &Transfer,
    past: Past,
    scratch: Option<Arc<Table>>,
    target: ExportTarget,
) {
    let written = match &scratch {
        None => write(shared, export, &past, &past.table, &past.snapshot, target),
        Some(scratch) => {
            let mut filler = Filler::new(shared, Arc::clone(scratch));
            filler.fill_from(&past).and_then(|()| {
                let snapshot = shared.database.snapshot();
                write(shared, export, &past, scratch, &snapshot, target)
            })
        }
    };
    if shared.stopping.load(Ordering::Acquire) {
        return;
    }
    let ended = written.unwrap_or_else(|error| {
        tracing::error!(
            export = export.id,
            error = &error as &dyn std::error::Error,
            "a table could not be exported"
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
                committer.give_up(Arc::clone(&scratch.items));
            }
            transfers::keep(committer, ended)
        })
        .blocking_recv();
    if !matches!(kept, Ok(Ok(()))) {
        shared.transfers.remove(&id);
    }
}

/// Writes the items of `table` in `snapshot` that had not expired at the export's moment.
fn write(
    shared: &Shared,
    export: &Transfer,
    past: &Past,
    table: &Table,
    snapshot: &Snapshot,
    target: ExportTarget,
) -> Result<Transfer, RestoreError> {
    let folder = target.folder.join(&export.id);
    let data = folder.join("data");
    std::fs::create_dir_all(&data).map_err(io(&data))?;
    write_file(&folder.join("_started"), b"")?;
    let key_prefix = format!("{}{}", target.key_prefix, export.id);
    let mut ended = export.clone();
    let mut manifest = Vec::new();
    let mut files = 0;
    let mut lines = DataWriter::default();
    let mut close = |lines: DataWriter| -> Result<(), RestoreError> {
        shared.room.check()?;
        if shared.stopping.load(Ordering::Acquire) {
            return Err(stopped().into());
        }
        let name = format!("{files:06}.json.gz");
        files += 1;
        let (items, bytes) = lines.finish()?;
        let digest = Md5::digest(&bytes);
        write_file(&data.join(&name), &bytes)?;
        let file = ExportedFile {
            item_count: items,
            md5_checksum: STANDARD.encode(digest),
            etag: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
            data_file_s3_key: format!("{key_prefix}/data/{name}"),
        };
        let line = serde_json::to_vec(&file).map_err(unavailable)?;
        manifest.extend_from_slice(&line);
        manifest.push(b'\n');
        Ok(())
    };
    for guard in snapshot.iter(&table.items) {
        let (key, value) = guard.into_inner().map_err(unavailable)?;
        if past.had_expired(&key, &value)? {
            continue;
        }
        let item = Record::new(&table.key, &key, &value)
            .and_then(Record::to_item)
            .map_err(unavailable)?;
        lines.add(&item)?;
        ended.items += 1;
        ended.item_bytes += item.size() as u64;
        if lines.len() >= DATA_FILE_BYTES {
            close(std::mem::take(&mut lines))?;
        }
    }
    // A table without items has one data file without lines, as DynamoDB's exports do.
    close(lines)?;
    ended.ended_at_ms = Some(shared.options.clock.now_ms());
    write_with_checksum(&folder, "manifest-files", &manifest)?;
    let summary = (target.summary)(&ended);
    write_with_checksum(&folder, "manifest-summary", &summary)?;
    for folder in [&data, &folder] {
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(io(folder))?;
    }
    Ok(ended)
}

fn write_with_checksum(folder: &Path, name: &str, text: &[u8]) -> Result<(), RestoreError> {
    let checksum = STANDARD.encode(Md5::digest(text));
    write_file(&folder.join(format!("{name}.md5")), checksum.as_bytes())?;
    write_file(&folder.join(format!("{name}.json")), text)
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), RestoreError> {
    File::create(path)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .map_err(io(path))
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> RestoreError {
    let path = path.to_owned();
    move |source| BackupError::Io { path, source }.into()
}

impl std::fmt::Debug for ExportTarget {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ExportTarget")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}
