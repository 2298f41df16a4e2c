//! Making a table from files with a line of `{"Item":{…}}` for each item, as DynamoDB's exports have
//! them. A line that cannot be an item of the table is counted and left out.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use homeport_item::Item;
use serde::Deserialize;

use crate::backup::{BackupError, LINE_BYTES_MAX};
use crate::committer::Committer;
use crate::error::unavailable;
use crate::folder::Folder;
use crate::record;
use crate::restoring::{self, Filler, NewTable, RestoreError};
use crate::shared::Shared;
use crate::table::{KeyFrom, TableDescription};
use crate::transfers::{self, Transfer, TransferKind};
use crate::vault::{UserKey, UserValue};

/// How the files are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    None,
    Gzip,
}

/// What is to be imported.
#[derive(Debug, Clone)]
pub struct ImportSource {
    /// The directory that the files are below.
    pub bucket: Folder,
    /// Paths below the bucket, read in this order; of items with one key the last one counts.
    pub files: Vec<String>,
    pub compression: Compression,
    /// What a protocol keeps with the import.
    pub notes: String,
}

/// Begins to make a table from files.
pub(crate) async fn begin(
    shared: &Shared,
    source: ImportSource,
    target: NewTable,
) -> Result<(TableDescription, Arc<Transfer>), RestoreError> {
    let (reply, begun) = tokio::sync::oneshot::channel();
    let open = move |committer: &Committer| {
        if committer.shared.transfers.is_full() {
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
        shared.transfers.add(Arc::clone(&import));
        // Who asked may have gone.
        let _ = reply.send(Arc::clone(&import));
        let mut ended = Transfer::clone(&import);
        let filled = fill(&source, filler, &mut ended);
        ended.ended_at_ms = Some(shared.options.clock.now_ms());
        ended.failure = filled.as_ref().err().map(ToString::to_string);
        // The table becomes visible after this; an import is never told to have ended before it has.
        filler.at_end(move |committer| Ok(transfers::keep(committer, ended)?));
        filled
    })
    .await?;
    let import = begun
        .await
        .map_err(|_| unavailable("the import ended before it began"))?;
    Ok((description, import))
}

fn fill(
    source: &ImportSource,
    filler: &mut Filler,
    ended: &mut Transfer,
) -> Result<(), RestoreError> {
    for path in &source.files {
        let file = source.bucket.open_file(path).map_err(io(path))?;
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
    filler: &mut Filler,
    ended: &mut Transfer,
) -> Result<(), RestoreError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Line {
        item: Item,
    }
    let mut text = Vec::new();
    loop {
        text.clear();
        let read = (&mut reader)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut text)
            .map_err(io(path))?;
        if read == 0 {
            return Ok(());
        }
        if read as u64 == LINE_BYTES_MAX && !text.ends_with(b"\n") {
            let text = format!("a line of {path} is longer than an item can be");
            return Err(BackupError::Damaged(text).into());
        }
        if text.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let item = serde_json::from_slice::<Line>(&text).map(|line| line.item);
        match item.ok().and_then(|item| prepared(filler, &item)) {
            Some((key, value, size)) => {
                ended.items += 1;
                ended.item_bytes += size;
                filler.set(key, Some(value))?;
            }
            None => ended.refused += 1,
        }
    }
}

/// The item as it is stored, if it can be one of the table.
fn prepared(filler: &Filler, item: &Item) -> Option<(UserKey, UserValue, u64)> {
    let table = &filler.table;
    let key = table.key_of(item).ok()?;
    item.check().ok()?;
    table.check_index_keys(item, KeyFrom::Put).ok()?;
    let value = record::encode(item, &table.key);
    Some((key, value, item.size() as u64))
}

fn io(path: &str) -> impl FnOnce(std::io::Error) -> RestoreError {
    let path = PathBuf::from(path);
    move |source| BackupError::Io { path, source }.into()
}
