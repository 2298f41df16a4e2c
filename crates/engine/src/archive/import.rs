//! Imports a table from files with one line `{"Item":{…}}` for each item, as in DynamoDB's exports. Lines
//! that are not valid items of the table are counted and skipped.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use homeport_item::Item;

use crate::archive::backup::BackupError;
use crate::archive::data_files::{ItemLine, LINE_BYTES_MAX};
use crate::archive::folder::Folder;
use crate::archive::restoring::{self, NewTable, RestoreError, TableFiller};
use crate::archive::transfers::{self, Transfer, TransferKind};
use crate::archive::unfinished::io;
use crate::catalogue::table::{KeyFrom, TableDescription};
use crate::commit::committer::Committer;
use crate::error::unavailable;
use crate::shared::Shared;
use crate::storage::record;
use crate::storage::vault::{UserKey, UserValue};

/// The compression of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    None,
    Gzip,
}

/// The source of an import.
#[derive(Debug, Clone)]
pub struct ImportSource {
    /// The directory that contains the files.
    pub bucket: Folder,
    /// Paths below the bucket, read in this order; for items with the same key, the last one counts.
    pub files: Vec<String>,
    pub compression: Compression,
    /// Opaque notes that a protocol stores with the import.
    pub notes: String,
}

/// Starts importing a table from files.
pub(crate) async fn begin(
    shared: &Shared,
    source: ImportSource,
    target: NewTable,
) -> Result<(TableDescription, Arc<Transfer>), RestoreError> {
    let (reply, begun) = tokio::sync::oneshot::channel();
    let open = move |committer: &Committer| {
        if transfers::is_full(&committer.shared) {
            return Err(RestoreError::TooMany);
        }
        Ok((source, reply))
    };
    let description = restoring::begin(shared, target, None, open, |opened, filler| {
        let (source, reply): (ImportSource, _) = opened;
        let shared = Arc::clone(filler.shared());
        let (table, notes) = (Arc::clone(&filler.table), source.notes.clone());
        let now_ms = shared.options.clock.now_ms();
        let import = transfers::begin(&shared, TransferKind::Import, &table, now_ms, notes);
        let import = Arc::new(import);
        shared
            .transfers
            .lock()
            .insert(import.id.clone(), Arc::clone(&import));
        // The caller may no longer wait.
        let _ = reply.send(Arc::clone(&import));
        let mut ended = Transfer::clone(&import);
        let filled = fill(&source, filler, &mut ended);
        ended.ended_at_ms = Some(shared.options.clock.now_ms());
        ended.failure = filled.as_ref().err().map(ToString::to_string);
        // The table becomes visible after this, and the import is reported as ended no earlier.
        filler.on_completion(move |committer| Ok(transfers::record_transfer(committer, ended)?));
        filled
    })
    .await?;
    let import = begun
        .await
        .map_err(|_| unavailable("the import ended before it started"))?;
    Ok((description, import))
}

fn fill(
    source: &ImportSource,
    filler: &mut TableFiller,
    ended: &mut Transfer,
) -> Result<(), RestoreError> {
    for path in &source.files {
        let file = source.bucket.open_file(path).map_err(io(Path::new(path)))?;
        match source.compression {
            Compression::None => read_lines(path, BufReader::new(file), filler, ended)?,
            Compression::Gzip => {
                let decoded = MultiGzDecoder::new(BufReader::new(file));
                read_lines(path, BufReader::new(decoded), filler, ended)?;
            }
        }
    }
    Ok(())
}

fn read_lines(
    path: &str,
    mut reader: impl BufRead,
    filler: &mut TableFiller,
    ended: &mut Transfer,
) -> Result<(), RestoreError> {
    let mut text = Vec::new();
    loop {
        text.clear();
        let read = (&mut reader)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut text)
            .map_err(io(Path::new(path)))?;
        if read == 0 {
            return Ok(());
        }
        if read as u64 == LINE_BYTES_MAX && !text.ends_with(b"\n") {
            let text = format!("a line of {path} is longer than any item");
            return Err(BackupError::Damaged(text).into());
        }
        if text.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let item = serde_json::from_slice::<ItemLine>(&text).map(|line| line.item);
        match item.ok().and_then(|item| encode_item(filler, &item)) {
            Some((key, value, size)) => {
                ended.items += 1;
                ended.item_bytes += size;
                filler.set(key, Some(value))?;
            }
            None => ended.refused += 1,
        }
    }
}

/// The stored form of an item, if it is a valid item of the table.
fn encode_item(filler: &TableFiller, item: &Item) -> Option<(UserKey, UserValue, u64)> {
    let table = &filler.table;
    let key = table.key_of(item).ok()?;
    item.check().ok()?;
    table.check_index_keys(item, KeyFrom::Put).ok()?;
    let value = record::encode(item, &table.key);
    Some((key, value, item.size() as u64))
}
