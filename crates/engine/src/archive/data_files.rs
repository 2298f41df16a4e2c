//! Data files of exports and backups, in DynamoDB's export format: compressed lines of `{"Item":{…}}`,
//! and the manifest that lists the files.

use std::io::Write as _;
use std::sync::atomic::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use homeport_item::Item;
use md5::{Digest as _, Md5};
use serde::{Deserialize, Serialize};

use crate::archive::backup::BackupError;
use crate::shared::{Shared, stopped};

/// A data file is closed when its compressed size reaches this.
const DATA_FILE_BYTES: usize = 16 * 1024 * 1024;
/// The longest line of a data file: an item of 400 KB with every byte escaped.
pub(crate) const LINE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A line of `manifest-files.json`, as in DynamoDB's exports.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DataFile {
    pub(crate) item_count: u64,
    pub(crate) md5_checksum: String,
    /// Only in exports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) etag: Option<String>,
    pub(crate) data_file_s3_key: String,
}

/// A line of a data file.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ItemLine {
    pub(crate) item: Item,
}

/// Writes the data files of a table. `W` stores a file under its name.
pub(crate) struct DataFileWriter<'s, W> {
    shared: &'s Shared,
    /// The path of the table's folder in the manifest.
    folder: String,
    has_etags: bool,
    write: W,
    lines: CompressedLines,
    files: Vec<DataFile>,
}

impl<'s, W: FnMut(&str, &[u8]) -> Result<(), BackupError>> DataFileWriter<'s, W> {
    pub(crate) fn new(shared: &'s Shared, folder: String, has_etags: bool, write: W) -> Self {
        Self {
            shared,
            folder,
            has_etags,
            write,
            lines: CompressedLines::default(),
            files: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, item: &Item) -> Result<(), BackupError> {
        self.lines.add(item)?;
        if self.lines.compressed_len() >= DATA_FILE_BYTES {
            self.close_file()?;
        }
        Ok(())
    }

    /// Writes the last file and returns all of them. Without items, there is one empty file if
    /// `writes_empty`, and otherwise none.
    pub(crate) fn finish(mut self, writes_empty: bool) -> Result<Vec<DataFile>, BackupError> {
        if self.lines.count > 0 || (writes_empty && self.files.is_empty()) {
            self.close_file()?;
        }
        Ok(self.files)
    }

    fn close_file(&mut self) -> Result<(), BackupError> {
        // The rest of the store needs the remaining disk space.
        self.shared.disk_space.check()?;
        if self.shared.stopping.load(Ordering::Acquire) {
            return Err(stopped().into());
        }
        let (item_count, bytes) = std::mem::take(&mut self.lines).finish()?;
        let name = format!("{:06}.json.gz", self.files.len());
        (self.write)(&name, &bytes)?;
        let digest = Md5::digest(&bytes);
        self.files.push(DataFile {
            item_count,
            md5_checksum: STANDARD.encode(digest),
            etag: self.has_etags.then(|| hex::encode(digest)),
            data_file_s3_key: format!("{}/data/{name}", self.folder),
        });
        Ok(())
    }
}

/// The contents of `manifest-files.json`.
pub(crate) fn manifest(files: &[DataFile]) -> Result<Vec<u8>, BackupError> {
    let mut manifest = Vec::new();
    for file in files {
        manifest.extend_from_slice(&to_json(file)?);
        manifest.push(b'\n');
    }
    Ok(manifest)
}

pub(crate) fn to_json(value: &impl Serialize) -> Result<Vec<u8>, BackupError> {
    serde_json::to_vec(value).map_err(|error| BackupError::Damaged(error.to_string()))
}

/// Lines under compression.
struct CompressedLines {
    encoder: GzEncoder<Vec<u8>>,
    count: u64,
}

impl Default for CompressedLines {
    fn default() -> Self {
        Self {
            encoder: GzEncoder::new(Vec::new(), Compression::fast()),
            count: 0,
        }
    }
}

impl CompressedLines {
    fn add(&mut self, item: &Item) -> Result<(), BackupError> {
        #[derive(Serialize)]
        #[serde(rename_all = "PascalCase")]
        struct Line<'a> {
            item: &'a Item,
        }
        let mut line = to_json(&Line { item })?;
        line.push(b'\n');
        self.count += 1;
        self.encoder
            .write_all(&line)
            .map_err(|error| BackupError::Damaged(error.to_string()))
    }

    fn compressed_len(&self) -> usize {
        self.encoder.get_ref().len()
    }

    /// The number of lines, and the compressed data.
    fn finish(self) -> Result<(u64, Vec<u8>), BackupError> {
        let bytes = self.encoder.finish();
        let bytes = bytes.map_err(|error| BackupError::Damaged(error.to_string()))?;
        Ok((self.count, bytes))
    }
}
