//! Backups: one file with all tables as they were at one moment, in the layout and the line format
//! of DynamoDB's own table exports, so that a table of it can be imported into Amazon DynamoDB.
//!
//! ```text
//! homeport-backup.json                       format, time, every table's schema and files
//! <table>/AWSDynamoDB/<id>/manifest-summary.json
//! <table>/AWSDynamoDB/<id>/manifest-files.json
//! <table>/AWSDynamoDB/<id>/data/<n>.json.gz  lines of {"Item":{…}}
//! ```
//! The list of contents stands last in the file: a backup without it is not complete. The backup of a
//! sealed store is sealed as a whole.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use homeport_item::Item;
use homeport_item::schema::TableSchema;
use homeport_store::StoreError;
use md5::{Digest as _, Md5};
use serde::{Deserialize, Serialize};

use crate::commit_clock::Times;
use crate::copying::TableCopy;
use crate::engine::Engine;
use crate::error::{OpenError, TableError};
use crate::options::Options;
use crate::record::Record;
use crate::seal::error::SealError;
use crate::seal::file::{self, FileKeys, FileWriter};
use crate::seal::master::MasterKey;
use crate::shared::{Shared, run_exclusive, stopped};
use crate::table::Table;

const FORMAT_VERSION: u32 = 1;
const CONTENTS_FILE: &str = "homeport-backup.json";
/// A data file is closed when its compressed form has this many bytes.
pub(crate) const DATA_FILE_BYTES: usize = 16 * 1024 * 1024;
/// Items that a restore hands over at once.
const RESTORE_CHUNK: usize = 500;
/// A line of a data file may not be longer: an item of 400 KB with every byte escaped.
pub(crate) const LINE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// What a backup or a restore covered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BackupSummary {
    pub tables: u64,
    pub items: u64,
    /// What the items count for, as DynamoDB counts.
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
    #[error("{} is already there", .0.display())]
    Exists(PathBuf),
    #[error("the backup is damaged or not complete: {0}")]
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
    /// What a protocol keeps with the table.
    #[serde(default)]
    settings: String,
    files: Vec<DataFile>,
}

/// One line of `manifest-files.json`, as DynamoDB's exports write it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DataFile {
    item_count: u64,
    md5_checksum: String,
    data_file_s3_key: String,
}

/// Writes a backup of all tables to `path`, which must not exist.
pub(crate) fn backup(shared: &Shared, path: &Path) -> Result<BackupSummary, BackupError> {
    if path.exists() {
        return Err(BackupError::Exists(path.to_owned()));
    }
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = PathBuf::from(unfinished);
    shared.room.check()?;
    let (copy, tables, times) = run_exclusive(shared, |committer| {
        let shared = &committer.shared;
        let catalogue = shared.catalogue.now();
        let tables: Vec<_> = catalogue.tables().cloned().collect();
        Ok((TableCopy::begin(committer, &tables), tables, shared.times()))
    })?;
    let written = write_tables(shared, &unfinished, &copy, &tables, times);
    if written.is_err() {
        let _ = std::fs::remove_file(&unfinished);
        return written;
    }
    rename_durably(&unfinished, path)?;
    written
}

/// Gives something that is whole on disk its name, which survives a power cut from then on.
pub(crate) fn rename_durably(unfinished: &Path, path: &Path) -> Result<(), BackupError> {
    std::fs::rename(unfinished, path).map_err(io(path))?;
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(parent)
        .and_then(|directory| directory.sync_all())
        .map_err(io(parent))
}

/// Writes tables as they are in `copy`, which began at `times`, to a file at `path`, which is whole and on disk when this
/// returns.
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
    archive.add(CONTENTS_FILE, &json(&contents)?)?;
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
    let mut files = Vec::new();
    let mut data = DataWriter::default();
    copy.read(table, |key, value| {
        let item = Record::new(&table.key, &key, &value)
            .and_then(|record| {
                // Only what the sweeper would remove: a clock that is ahead must not cost items here either.
                let expired = table.is_expired(&record, times.removal_secs())?;
                Ok((expired, record.to_item()?))
            })
            .map_err(crate::error::unavailable)?;
        if let (false, item) = item {
            item_bytes += item.size() as u64;
            data.add(&item)?;
        }
        if data.len() >= DATA_FILE_BYTES {
            // The rest of the store needs the room that is left.
            shared.room.check()?;
            if shared.stopping.load(Ordering::Acquire) {
                return Err(stopped().into());
            }
            files.push(archive.add_data(&folder, files.len(), std::mem::take(&mut data))?);
        }
        Ok::<_, BackupError>(())
    })?;
    if data.items > 0 {
        files.push(archive.add_data(&folder, files.len(), data)?);
    }
    let mut manifest = Vec::new();
    for file in &files {
        manifest.extend_from_slice(&json(file)?);
        manifest.push(b'\n');
    }
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
    archive.add(&format!("{folder}/manifest-summary.json"), &json(&summary)?)?;
    Ok((files, item_bytes))
}

/// Lines being compressed.
pub(crate) struct DataWriter {
    encoder: GzEncoder<Vec<u8>>,
    items: u64,
}

impl Default for DataWriter {
    fn default() -> Self {
        Self {
            encoder: GzEncoder::new(Vec::new(), Compression::fast()),
            items: 0,
        }
    }
}

impl DataWriter {
    pub(crate) fn add(&mut self, item: &Item) -> Result<(), BackupError> {
        #[derive(Serialize)]
        #[serde(rename_all = "PascalCase")]
        struct Line<'a> {
            item: &'a Item,
        }
        let mut line = json(&Line { item })?;
        line.push(b'\n');
        self.items += 1;
        self.encoder
            .write_all(&line)
            .map_err(|error| BackupError::Damaged(error.to_string()))
    }

    pub(crate) fn len(&self) -> usize {
        self.encoder.get_ref().len()
    }

    /// How many lines there are, and all of them compressed.
    pub(crate) fn finish(self) -> Result<(u64, Vec<u8>), BackupError> {
        let bytes = self.encoder.finish();
        let bytes = bytes.map_err(|error| BackupError::Damaged(error.to_string()))?;
        Ok((self.items, bytes))
    }
}

/// The file that a backup is written to.
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

    fn add_data(
        &mut self,
        folder: &str,
        number: usize,
        data: DataWriter,
    ) -> Result<DataFile, BackupError> {
        let (items, bytes) = data.finish()?;
        let name = format!("{folder}/data/{number:06}.json.gz");
        self.add(&name, &bytes)?;
        Ok(DataFile {
            item_count: items,
            md5_checksum: STANDARD.encode(Md5::digest(&bytes)),
            data_file_s3_key: name,
        })
    }

    fn finish(self) -> Result<(), BackupError> {
        let path = self.path;
        let writer = self.builder.into_inner().map_err(io(&path))?;
        writer.finish().map_err(io(&path))
    }
}

/// Makes a new data directory at `path` from a backup. The directory appears only when all of it
/// is there.
///
/// With a master key the new directory is sealed, whether the backup is or not; a sealed backup needs
/// the master key that it was made with.
///
/// # Errors
/// When `path` exists, the backup is damaged, not complete or newer than this program, or it is sealed
/// and the key is not the one.
pub async fn restore(
    backup: &Path,
    path: &Path,
    options: Options,
) -> Result<BackupSummary, BackupError> {
    if path.exists() {
        return Err(BackupError::Exists(path.to_owned()));
    }
    let master = options.master_key.clone();
    let contents = read_contents(backup, FileKeys::Master(master.as_ref()))?;
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = PathBuf::from(unfinished);
    if unfinished.exists() {
        std::fs::remove_dir_all(&unfinished).map_err(io(&unfinished))?;
    }
    let restored = restore_into(backup, &contents, &unfinished, options).await;
    if restored.is_err() {
        let _ = std::fs::remove_dir_all(&unfinished);
        return restored;
    }
    rename_durably(&unfinished, path)?;
    restored
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
        // The stream is switched on at the end: restored items are no changes.
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

/// Reads the whole backup into the tables, which are there already.
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

/// What a backup says that it holds.
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

/// Takes items of the table with this name.
type Take<'a> = dyn FnMut(&str, Vec<Item>) -> Result<(), BackupError> + 'a;

/// Hands out all items of a backup in chunks, each with its table. Every data file is verified before
/// anything of it is handed out.
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
                "{name} has {restored} items and should have {}",
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
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Line {
        item: Item,
    }
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
        chunk.push(parse::<Line>(text.as_bytes())?.item);
        count += 1;
    }
}

fn open_archive(
    backup: &Path,
    keys: FileKeys<'_>,
) -> Result<tar::Archive<Box<dyn Read + Send>>, BackupError> {
    Ok(tar::Archive::new(file::open(backup, keys)?))
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, BackupError> {
    serde_json::to_vec(value).map_err(|error| BackupError::Damaged(error.to_string()))
}

fn parse<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Result<T, BackupError> {
    serde_json::from_slice(bytes).map_err(|error| BackupError::Damaged(error.to_string()))
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> BackupError {
    let path = path.to_owned();
    move |source| BackupError::Io { path, source }
}
