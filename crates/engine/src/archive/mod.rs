//! Copies of tables: backups, exports, imports, history, and restoring tables from them.

pub(crate) mod backup;
pub(crate) mod copying;
pub(crate) mod data_files;
pub(crate) mod export;
pub(crate) mod folder;
pub(crate) mod history;
pub(crate) mod import;
mod past;
pub(crate) mod records;
pub(crate) mod restoring;
pub(crate) mod table_backups;
pub(crate) mod transfers;
pub(crate) mod unfinished;
