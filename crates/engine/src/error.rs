//! Errors of opening, describing and maintaining an engine. Operations on items fail with the errors of the
//! `Store` trait.

use std::path::PathBuf;

use homeport_item::schema::SchemaError;
use homeport_store::StoreError;

use crate::storage::seal::error::SealError;

/// Why a data directory could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the data directory {} is in use by another process", .0.display())]
    Locked(PathBuf),
    #[error(
        "the data directory {} was written in format {found}, but this program supports formats up to {known}: use a newer Homeport",
        .path.display()
    )]
    NewerFormat {
        path: PathBuf,
        found: u32,
        known: u32,
    },
    #[error("{} is not a Homeport data directory: {reason}", .path.display())]
    NotADataDirectory { path: PathBuf, reason: String },
    #[error(
        "the journal {} is damaged at byte {offset}, before writes that were acknowledged later; nothing was changed, and data before and after the damage is still readable: copy it to a new data directory with \"homeport salvage\", or restore a backup",
        .path.display()
    )]
    DamagedJournal { path: PathBuf, offset: u64 },
    #[error(
        "the data directory {} is damaged or incomplete: {damage}; nothing was changed: restore the missing files, copy everything readable to a new data directory with \"homeport salvage\", or restore a backup",
        .path.display()
    )]
    Damaged { path: PathBuf, damage: String },
    #[error(
        "{} does not belong to the store; nothing was changed: move it out of the data directory, and start again",
        .0.display()
    )]
    StrayEntry(PathBuf),
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error(
        "the catalogue of tables is damaged: {0}; copy everything readable to a new data directory with \"homeport salvage\", or restore a backup"
    )]
    DamagedCatalogue(String),
    #[error(
        "cannot copy journals to the temporary directory {}; set TMPDIR to a directory with more space",
        .path.display()
    )]
    TemporaryDirectory {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("cannot read or write the data directory")]
    Io(#[from] std::io::Error),
    #[error("cannot open the key-value store: {0}")]
    Storage(String),
}

/// Why a change of a table failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TableError {
    #[error("table {0:?} already exists")]
    Exists(String),
    #[error("table {0:?} does not exist")]
    Missing(String),
    #[error("table {table:?} already has an index {index:?}")]
    IndexExists { table: String, index: String },
    #[error("table {table:?} has no index {index:?}")]
    IndexNotFound { table: String, index: String },
    #[error("{0:?} already exists with other keys")]
    DifferentKeys(String),
    #[error("the table already has a TTL attribute; disable it first")]
    TimeToLiveInUse,
    #[error("the previous change of the table's time to live is still in progress")]
    TimeToLiveBusy,
    #[error(
        "background work on table {table:?} failed: {reason}; check the store with `homeport check`, then restart"
    )]
    BackgroundWorkFailed { table: String, reason: String },
    #[error(transparent)]
    Schema(#[from] SchemaError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Converts an error of the key-value store to an error of the `Store` trait.
pub(crate) fn unavailable(error: impl std::fmt::Display) -> StoreError {
    StoreError::Unavailable(error.to_string())
}
