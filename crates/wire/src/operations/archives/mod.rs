//! Backups, point-in-time recovery, exports and imports.

pub(crate) mod backups;
pub(crate) mod describe_continuous_backups;
pub(crate) mod export_table_to_point_in_time;
pub(crate) mod import_table;
pub(crate) mod list_backups;
pub(crate) mod restore_table_from_backup;
pub(crate) mod restore_table_to_point_in_time;
pub(crate) mod transfers;
pub(crate) mod update_continuous_backups;
