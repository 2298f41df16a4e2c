//! Backups: one file with all tables as they were at one moment. It uses the layout and the line format of
//! DynamoDB's table exports, so that each table in it can be imported into Amazon DynamoDB.
//!
//! ```text
//! homeport-backup.json                       format, time, every table's schema and files
//! <table>/AWSDynamoDB/<id>/manifest-summary.json
//! <table>/AWSDynamoDB/<id>/manifest-files.json
//! <table>/AWSDynamoDB/<id>/data/<n>.json.gz  lines of {"Item":{…}}
//! ```
//! The list of contents is the last entry of the file: a backup without it is incomplete. The backup of a
//! sealed store is sealed as a whole.

use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use homeport_item::Item;
use homeport_item::schema::TableSchema;
use homeport_store::StoreError;
use md5::{Digest as _, Md5};
use serde::{Deserialize, Serialize};

use crate::archive::copying::TableCopy;
use crate::archive::data_files::{
    self, DataFile, DataFileWriter, ItemLine, LINE_BYTES_MAX, to_json,
};
use crate::archive::unfinished::{Unfinished, io};
use crate::catalogue::table::Table;
use crate::commit::commit_clock::Times;
use crate::engine::Engine;
use crate::error::{OpenError, TableError};
use crate::options::Options;
use crate::shared::{Shared, run_exclusive, stopped};
use crate::storage::record::Record;
use crate::storage::seal::error::SealError;
use crate::storage::seal::file::{self, FileKeys, FileWriter};
use crate::storage::seal::master::MasterKey;

const FORMAT_VERSION: u32 = 1;
const CONTENTS_FILE: &str = "homeport-backup.json";
/// Items that a restore writes at once.
const RESTORE_CHUNK: usize = 500;
/// The result of a backup or a restore.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BackupSummary {
    pub tables: u64,
    pub items: u64,
    /// The size of the items, as DynamoDB counts it.
    pub item_bytes: u64,
}

/// Why a backup or a restore failed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("cannot read or write {}", .path.display())]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{} already exists", .0.display())]
    Exists(PathBuf),
    #[error("the backup is damaged or incomplete: {0}")]
    Damaged(String),
    #[error(
        "the backup is in format {found}, but this program knows formats up to {FORMAT_VERSION}"
    )]
    NewerFormat { found: u32 },
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Table(#[from] TableError),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Contents {
    format: u32,
    taken_at_ms: i64,
    tables: Vec<TableContents>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct TableContents {
    schema: TableSchema,
    /// Opaque settings that a protocol stores with the table.
    #[serde(default)]
    settings: String,
    files: Vec<DataFile>,
}

/// Writes a backup of all tables to `path`, which must not exist.
pub(crate) fn backup(shared: &Shared, path: &Path) -> Result<BackupSummary, BackupError> {
    let unfinished = Unfinished::file(path)?;
    shared.disk_space.check()?;
    let (copy, tables, times) = run_exclusive(shared, |committer| {
        let shared = &committer.shared;
        let catalogue = shared.catalogue.now();
        let tables: Vec<_> = catalogue.tables().cloned().collect();
        Ok::<_, StoreError>((TableCopy::begin(committer, &tables), tables, shared.times()))
    })?;
    let summary = write_tables(shared, unfinished.path(), &copy, &tables, times)?;
    unfinished.finish()?;
    Ok(summary)
}

/// Writes the tables of `copy`, which began at `times`, to a file at `path`. The file is complete and on disk
/// when this returns.
pub(crate) fn write_tables(
    shared: &Shared,
    path: &Path,
    copy: &TableCopy,
    tables: &[Arc<Table>],
    times: Times,
) -> Result<BackupSummary, BackupError> {
    let taken_at_ms = times.commit_ms;
    let file = file::create(path, shared.database.sealer())?;
    let mut archive = Archive {
        builder: tar::Builder::new(file),
        path: path.to_owned(),
        mtime_secs: u64::try_from(taken_at_ms / 1000).unwrap_or(0),
    };
    let mut contents = Contents {
        format: FORMAT_VERSION,
        taken_at_ms,
        tables: Vec::new(),
    };
    let mut summary = BackupSummary::default();
    for table in tables {
        let (files, item_bytes) = write_table(shared, &mut archive, table, times, copy)?;
        summary.item_bytes += item_bytes;
        summary.tables += 1;
        summary.items += files.iter().map(|file| file.item_count).sum::<u64>();
        contents.tables.push(TableContents {
            schema: table.schema().clone(),
            settings: table.record.settings.clone(),
            files,
        });
    }
    archive.add(CONTENTS_FILE, &to_json(&contents)?)?;
    archive.finish()?;
    Ok(summary)
}

fn write_table(
    shared: &Shared,
    archive: &mut Archive,
    table: &Table,
    times: Times,
    copy: &TableCopy,
) -> Result<(Vec<DataFile>, u64), BackupError> {
    let taken_at_ms = times.commit_ms;
    let mut item_bytes = 0;
    let folder = format!("{}/AWSDynamoDB/{taken_at_ms:014}", table.name());
    let mut data = DataFileWriter::new(shared, folder.clone(), false, |name, bytes| {
        archive.add(&format!("{folder}/data/{name}"), bytes)
    });
    copy.read(table, |key, value| {
        let item = Record::new(&table.key, &key, &value)
            .and_then(|record| {
                // Skip only items that the sweeper would delete: a clock that is ahead must not lose items here either.
                let expired = table.is_expired(&record, times.removal_secs())?;
                Ok((expired, record.to_item()?))
            })
            .map_err(crate::error::unavailable)?;
        if let (false, item) = item {
            item_bytes += item.size() as u64;
            data.add(&item)?;
        }
        Ok::<_, BackupError>(())
    })?;
    let files = data.finish(false)?;
    let manifest = data_files::manifest(&files)?;
    archive.add(&format!("{folder}/manifest-files.json"), &manifest)?;
    let summary = serde_json::json!({
        "version": "2020-06-30",
        "exportTime": taken_at_ms,
        "tableArn": format!("arn:aws:dynamodb:local:000000000000:table/{}", table.name()),
        "tableId": table.id().to_string(),
        "itemCount": files.iter().map(|file| file.item_count).sum::<u64>(),
        "outputFormat": "DYNAMODB_JSON",
        "manifestFilesS3Key": format!("{folder}/manifest-files.json"),
    });
    archive.add(
        &format!("{folder}/manifest-summary.json"),
        &to_json(&summary)?,
    )?;
    Ok((files, item_bytes))
}

/// The file of a backup while it is written.
struct Archive {
    builder: tar::Builder<FileWriter>,
    path: PathBuf,
    mtime_secs: u64,
}

impl Archive {
    fn add(&mut self, name: &str, bytes: &[u8]) -> Result<(), BackupError> {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(self.mtime_secs);
        self.builder
            .append_data(&mut header, name, bytes)
            .map_err(io(&self.path))
    }

    fn finish(self) -> Result<(), BackupError> {
        let path = self.path;
        let writer = self.builder.into_inner().map_err(io(&path))?;
        writer.finish().map_err(io(&path))
    }
}

/// Creates a new data directory at `path` from a backup. The directory appears only once it is complete.
///
/// With a master key the new directory is sealed, whether or not the backup is. A sealed backup needs the
/// master key that it was created with.
///
/// # Errors
/// Fails if `path` exists, or the backup is damaged, incomplete, in a newer format, or sealed with another
/// key.
pub async fn restore(
    backup: &Path,
    path: &Path,
    options: Options,
) -> Result<BackupSummary, BackupError> {
    let unfinished = Unfinished::folder(path)?;
    let master = options.master_key.clone();
    let contents = read_contents(backup, FileKeys::Master(master.as_ref()))?;
    let summary = restore_into(backup, &contents, unfinished.path(), options).await?;
    unfinished.finish()?;
    Ok(summary)
}

async fn restore_into(
    backup: &Path,
    contents: &Contents,
    path: &Path,
    options: Options,
) -> Result<BackupSummary, BackupError> {
    let master = options.master_key.clone();
    let engine = Engine::create_from(path, options, Some(contents.taken_at_ms)).await?;
    for table in &contents.tables {
        // Streams are enabled at the end, because restored items are not changes.
        let schema = TableSchema {
            stream: None,
            ..table.schema.clone()
        };
        engine
            .create_table_with(schema, table.settings.clone())
            .await?;
    }
    let (items, item_bytes) = load_all(&engine, backup, contents, master).await?;
    for table in &contents.tables {
        if table.schema.stream.is_some() {
            engine
                .set_stream(&table.schema.name, table.schema.stream)
                .await?;
        }
    }
    Ok(BackupSummary {
        tables: contents.tables.len() as u64,
        items,
        item_bytes,
    })
}

/// Reads the whole backup into the tables, which exist already.
async fn load_all(
    engine: &Engine,
    backup: &Path,
    contents: &Contents,
    master: Option<MasterKey>,
) -> Result<(u64, u64), BackupError> {
    let (engine, backup, contents) = (engine.clone(), backup.to_owned(), contents.clone());
    let runtime = tokio::runtime::Handle::current();
    let loading = tokio::task::spawn_blocking(move || {
        let mut bytes = 0;
        let keys = FileKeys::Master(master.as_ref());
        let items = read_items(&backup, keys, &contents, &mut |table, items| {
            bytes += items.iter().map(|item| item.size() as u64).sum::<u64>();
            let table = Arc::clone(engine.shared().catalogue.now().get(table)?);
            let items = items.iter().map(|item| table.encode(item));
            let items = items.collect::<Result<Vec<_>, _>>()?;
            Ok(runtime.block_on(engine.load_items(&table, items))?)
        })?;
        Ok((items, bytes))
    });
    loading.await.map_err(|_| BackupError::Store(stopped()))?
}

/// Reads a backup's list of contents.
pub(crate) fn read_contents(backup: &Path, keys: FileKeys<'_>) -> Result<Contents, BackupError> {
    let mut archive = open_archive(backup, keys)?;
    for entry in archive.entries().map_err(io(backup))? {
        let mut entry = entry.map_err(|error| BackupError::Damaged(error.to_string()))?;
        let is_contents = entry
            .path()
            .is_ok_and(|name| name == Path::new(CONTENTS_FILE));
        if is_contents {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).map_err(io(backup))?;
            let contents: Contents = parse(&bytes)?;
            if contents.format > FORMAT_VERSION {
                return Err(BackupError::NewerFormat {
                    found: contents.format,
                });
            }
            return Ok(contents);
        }
    }
    Err(BackupError::Damaged(
        "its list of contents is missing".to_owned(),
    ))
}

/// Receives items of the named table.
type Take<'a> = dyn FnMut(&str, Vec<Item>) -> Result<(), BackupError> + 'a;

/// Passes all items of a backup to `take` in chunks, each with its table. Every data file is verified before
/// any of its items is passed on.
pub(crate) fn read_items(
    backup: &Path,
    keys: FileKeys<'_>,
    contents: &Contents,
    take: &mut Take<'_>,
) -> Result<u64, BackupError> {
    let mut expected: std::collections::BTreeMap<&str, (&str, &DataFile)> = contents
        .tables
        .iter()
        .flat_map(|table| {
            let name = table.schema.name.as_str();
            let files = table.files.iter();
            files.map(move |file| (file.data_file_s3_key.as_str(), (name, file)))
        })
        .collect();
    let mut items = 0;
    let mut archive = open_archive(backup, keys)?;
    for entry in archive.entries().map_err(io(backup))? {
        let mut entry = entry.map_err(|error| BackupError::Damaged(error.to_string()))?;
        let name = match entry.path() {
            Ok(name) => name.to_string_lossy().into_owned(),
            Err(error) => return Err(BackupError::Damaged(error.to_string())),
        };
        let Some((table, file)) = expected.remove(name.as_str()) else {
            continue;
        };
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(io(backup))?;
        if STANDARD.encode(Md5::digest(&bytes)) != file.md5_checksum {
            return Err(BackupError::Damaged(format!("{name} has changed")));
        }
        let restored = read_file(table, &name, &bytes, take)?;
        if restored != file.item_count {
            return Err(BackupError::Damaged(format!(
                "{name} has {restored} items instead of {}",
                file.item_count
            )));
        }
        items += restored;
    }
    match expected.keys().next() {
        None => Ok(items),
        Some(name) => Err(BackupError::Damaged(format!("{name} is missing"))),
    }
}

fn read_file(
    table: &str,
    name: &str,
    bytes: &[u8],
    take: &mut Take<'_>,
) -> Result<u64, BackupError> {
    let mut reader = BufReader::new(GzDecoder::new(bytes));
    let mut count = 0;
    let mut chunk = Vec::with_capacity(RESTORE_CHUNK);
    let mut text = String::new();
    loop {
        text.clear();
        let read = (&mut reader)
            .take(LINE_BYTES_MAX)
            .read_line(&mut text)
            .map_err(|error| BackupError::Damaged(format!("{name}: {error}")))?;
        if read == 0 || chunk.len() == RESTORE_CHUNK {
            take(table, std::mem::take(&mut chunk))?;
        }
        if read == 0 {
            return Ok(count);
        }
        chunk.push(parse::<ItemLine>(text.as_bytes())?.item);
        count += 1;
    }
}

fn open_archive(
    backup: &Path,
    keys: FileKeys<'_>,
) -> Result<tar::Archive<Box<dyn Read + Send>>, BackupError> {
    Ok(tar::Archive::new(file::open(backup, keys)?))
}

fn parse<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Result<T, BackupError> {
    serde_json::from_slice(bytes).map_err(|error| BackupError::Damaged(error.to_string()))
}
