//! The engine's calls for backups of tables, history, exports and imports.

use std::sync::Arc;

use crate::archive::export::{self, ExportTarget};
use crate::archive::history::{self, RestorePoint};
use crate::archive::import::{self, ImportSource};
use crate::archive::records;
use crate::archive::restoring::{NewTable, RestoreError};
use crate::archive::table_backups::{self, TableBackup, TableBackupError};
use crate::archive::transfers::{self, Transfer, TransferKind};
use crate::catalogue::table::TableDescription;
use crate::engine::Engine;
use crate::error::TableError;

impl Engine {
    /// Starts a backup of a table in its current state. Writes continue in the meantime. The backup is
    /// complete when [`Engine::table_backup`] says so.
    ///
    /// # Errors
    /// Fails if the table does not exist or there are too many backups.
    pub async fn create_table_backup(
        &self,
        table: &str,
        name: &str,
    ) -> Result<Arc<TableBackup>, TableBackupError> {
        table_backups::create(self.shared(), table.to_owned(), name.to_owned()).await
    }

    /// All backups of tables in time order, including those in progress.
    #[must_use]
    pub fn table_backups(&self) -> Vec<Arc<TableBackup>> {
        records::all(self.shared()).into_values().collect()
    }

    #[must_use]
    pub fn table_backup(&self, id: &str) -> Option<Arc<TableBackup>> {
        records::get(self.shared(), id)
    }

    /// Deletes a backup of a table.
    ///
    /// # Errors
    /// Fails if there is no backup with this id, or it is being written or restored.
    pub async fn delete_table_backup(
        &self,
        id: &str,
    ) -> Result<Arc<TableBackup>, TableBackupError> {
        table_backups::delete(self.shared(), id.to_owned()).await
    }

    /// Starts restoring a backup to a new table. The table can be used once its description no longer says
    /// that it is being restored; if the process ends earlier, there is no such table.
    ///
    /// # Errors
    /// Fails if there is no such backup, the table exists, or it cannot be created.
    pub async fn restore_table_backup(
        &self,
        id: &str,
        target: NewTable,
    ) -> Result<TableDescription, RestoreError> {
        table_backups::restore(self.shared(), id.to_owned(), target).await
    }

    /// Keeps a table's changes so that it can be restored to any later moment, for up to `period_days` (at
    /// most [`crate::HISTORY_DAYS_MAX`]). `None` disables history.
    ///
    /// # Errors
    /// Fails if the table does not exist.
    pub async fn set_history(
        &self,
        table: &str,
        period_days: Option<u32>,
    ) -> Result<(), TableError> {
        history::set(self.shared(), table.to_owned(), period_days).await
    }

    /// Starts restoring a table to an earlier moment, as a new table. The new table can be used once its
    /// description no longer says that it is being restored; if the process ends earlier, there is no such
    /// table.
    ///
    /// # Errors
    /// Fails if the source does not exist, its history does not include the moment, or the target exists or
    /// cannot be created.
    pub async fn restore_table_to(
        &self,
        source: &str,
        point: RestorePoint,
        target: NewTable,
    ) -> Result<TableDescription, RestoreError> {
        history::restore(self.shared(), source.to_owned(), point, target).await
    }

    /// Starts an export of a table, as it was at some moment, to a folder in DynamoDB's export format.
    ///
    /// # Errors
    /// Fails if the table does not exist, its history does not include the moment, or too many transfers are
    /// running.
    pub async fn export_table(
        &self,
        source: &str,
        point: RestorePoint,
        target: ExportTarget,
    ) -> Result<Arc<Transfer>, RestoreError> {
        export::begin(self.shared(), source.to_owned(), point, target).await
    }

    /// Starts importing a new table from files in DynamoDB's export format. The table can be used once its
    /// description no longer says that it is being restored; if the process ends earlier, there is no such
    /// table.
    ///
    /// # Errors
    /// Fails if the table exists or cannot be created, or too many transfers are running.
    pub async fn import_table(
        &self,
        source: ImportSource,
        target: NewTable,
    ) -> Result<(TableDescription, Arc<Transfer>), RestoreError> {
        import::begin(self.shared(), source, target).await
    }

    /// Exports or imports, in time order.
    #[must_use]
    pub fn transfers(&self, kind: TransferKind) -> Vec<Arc<Transfer>> {
        transfers::all(self.shared(), kind)
    }

    #[must_use]
    pub fn transfer(&self, kind: TransferKind, id: &str) -> Option<Arc<Transfer>> {
        transfers::get(self.shared(), kind, id)
    }
}
