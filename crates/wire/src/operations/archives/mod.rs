//! Backups, point-in-time recovery, exports and imports.

mod backup_input;
pub(crate) mod create_backup;
pub(crate) mod delete_backup;
pub(crate) mod describe_backup;
pub(crate) mod describe_continuous_backups;
pub(crate) mod describe_export;
pub(crate) mod describe_import;
pub(crate) mod export_table_to_point_in_time;
pub(crate) mod import_table;
pub(crate) mod list_backups;
pub(crate) mod list_exports;
pub(crate) mod list_imports;
pub(crate) mod restore_table_from_backup;
pub(crate) mod restore_table_to_point_in_time;
mod transfer_pages;
pub(crate) mod update_continuous_backups;
