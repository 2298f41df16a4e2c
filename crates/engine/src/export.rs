//! Writing a table, as it is or as it was, to a folder in DynamoDB's export format:
//! ```text
//! _started
//! data/<n>.json.gz      lines of {"Item":{…}}
//! manifest-files.json   a line for each data file, and manifest-files.md5
//! manifest-summary.json what was exported, and manifest-summary.md5
//! ```
//! The summary is written last: an export without it is not complete.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homeport_item::schema::TableSchema;
use md5::{Digest as _, Md5};
use serde::Serialize;

use crate::backup::{BackupError, DATA_FILE_BYTES, DataWriter};
use crate::copying;
use crate::error::unavailable;
use crate::folder::Folder;
use crate::history::{self, Past, RestorePoint};
use crate::record::Record;
use crate::restoring::{self, Filler, RestoreError};
use crate::shared::{Shared, stopped};
use crate::table::Table;
use crate::transfers::{self, Transfer, TransferKind};
use crate::vault::{UserKey, UserValue};

/// Where an export goes, and what is to be said about it.
pub struct ExportTarget {
    /// The directory that the export is written below.
    pub bucket: Folder,
    /// The path below the bucket in which the export makes a folder of its own, named by its id. Manifests name data files
    /// with it.
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
            let past = history::open(committer, &source, point)?;
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
        None => write(shared, export, &past, None, target),
        Some(scratch) => {
            let mut filler = Filler::new(shared, Arc::clone(scratch));
            filler
                .fill_from(&past)
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

/// Writes the items that had not expired at the export's moment: those of `scratch`, where later changes were
/// undone, or of the table itself.
fn write(
    shared: &Shared,
    export: &Transfer,
    past: &Past,
    scratch: Option<&Table>,
    target: ExportTarget,
) -> Result<Transfer, RestoreError> {
    let key_prefix = format!("{}{}", target.key_prefix, export.id);
    let folder = make_folders(&target.bucket, &key_prefix)?;
    let data = make_folders(&folder, "data")?;
    write_file(&folder, "_started", b"")?;
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
        write_file(&data, &name, &bytes)?;
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
    let table = scratch.unwrap_or(&past.table);
    let mut take = |key: UserKey, value: UserValue| {
        if past.had_expired(&key, &value)? {
            return Ok(());
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
        Ok::<_, RestoreError>(())
    };
    match scratch {
        Some(scratch) => copying::read_unchanging(shared, &scratch.items, &mut take)?,
        None => past.copy.read(table, &mut take)?,
    }
    // A table without items has one data file without lines, as DynamoDB's exports do.
    close(lines)?;
    ended.ended_at_ms = Some(shared.options.clock.now_ms());
    write_with_checksum(&folder, "manifest-files", &manifest)?;
    let summary = (target.summary)(&ended);
    write_with_checksum(&folder, "manifest-summary", &summary)?;
    for folder in [&data, &folder] {
        folder.sync().map_err(io(&key_prefix))?;
    }
    Ok(ended)
}

fn write_with_checksum(folder: &Folder, name: &str, text: &[u8]) -> Result<(), RestoreError> {
    let checksum = STANDARD.encode(Md5::digest(text));
    write_file(folder, &format!("{name}.md5"), checksum.as_bytes())?;
    write_file(folder, &format!("{name}.json"), text)
}

/// Opens the folder at a path below another one, and makes what is missing.
fn make_folders(below: &Folder, path: &str) -> Result<Folder, RestoreError> {
    let mut folder = below.clone();
    for name in path.split('/') {
        folder = folder.make_folder(name).map_err(io(path))?;
    }
    Ok(folder)
}

fn write_file(folder: &Folder, name: &str, bytes: &[u8]) -> Result<(), RestoreError> {
    folder
        .create_file(name)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .map_err(io(name))
}

fn io(path: &str) -> impl FnOnce(std::io::Error) -> RestoreError {
    let path = PathBuf::from(path);
    move |source| BackupError::Io { path, source }.into()
}

impl std::fmt::Debug for ExportTarget {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ExportTarget")
            .field("key_prefix", &self.key_prefix)
            .finish_non_exhaustive()
    }
}
