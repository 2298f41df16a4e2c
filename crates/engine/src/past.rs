//! The engine's calls that have to do with the past: backups of tables, their history, and making
//! tables from either.

use std::sync::Arc;

use crate::engine::Engine;
use crate::error::TableError;
use crate::export::{self, ExportTarget};
use crate::history::{self, RestorePoint};
use crate::import::{self, ImportSource};
use crate::restoring::{NewTable, RestoreError};
use crate::table::TableDescription;
use crate::table_backups::{self, TableBackup, TableBackupError};
use crate::transfers::{self, Transfer, TransferKind};

impl Engine {
    /// Begins to back a table up as it is at this moment. Writes may go on meanwhile. The backup is
    /// complete when [`Engine::table_backup`] says so.
    ///
    /// # Errors
    /// When the table does not exist, or there are too many backups.
    pub async fn create_table_backup(
        &self,
        table: &str,
        name: &str,
    ) -> Result<Arc<TableBackup>, TableBackupError> {
        table_backups::create(self.shared(), table.to_owned(), name.to_owned()).await
    }

    /// All backups of tables in the order of their times, also those that are being written.
    #[must_use]
    pub fn table_backups(&self) -> Vec<Arc<TableBackup>> {
        table_backups::all(self.shared())
    }

    #[must_use]
    pub fn table_backup(&self, id: &str) -> Option<Arc<TableBackup>> {
        table_backups::get(self.shared(), id)
    }

    /// Removes a backup of a table.
    ///
    /// # Errors
    /// When there is none with this id, or it is being written or restored.
    pub async fn delete_table_backup(
        &self,
        id: &str,
    ) -> Result<Arc<TableBackup>, TableBackupError> {
        table_backups::delete(self.shared(), id.to_owned()).await
    }

    /// Begins to make a new table from a backup. It can be used when it is no longer described as
    /// being restored; should the process end before, there is no such table.
    ///
    /// # Errors
    /// When there is no such backup, the table exists, or it cannot be made.
    pub async fn restore_table_backup(
        &self,
        id: &str,
        target: NewTable,
    ) -> Result<TableDescription, RestoreError> {
        table_backups::restore(self.shared(), id.to_owned(), target).await
    }

    /// Keeps a table's changes so that it can be restored to any moment from now on, for up to
    /// `period_days` (at most [`crate::HISTORY_DAYS_MAX`]); with none, no longer.
    ///
    /// # Errors
    /// When the table does not exist.
    pub async fn set_history(
        &self,
        table: &str,
        period_days: Option<u32>,
    ) -> Result<(), TableError> {
        history::set(self.shared(), table.to_owned(), period_days).await
    }

    /// Begins to make a new table as another one was at some moment. It can be used when it is no
    /// longer described as being restored; should the process end before, there is no such table.
    ///
    /// # Errors
    /// When the source does not exist or its history does not have the moment, or the target exists
    /// or cannot be made.
    pub async fn restore_table_to(
        &self,
        source: &str,
        point: RestorePoint,
        target: NewTable,
    ) -> Result<TableDescription, RestoreError> {
        history::restore(self.shared(), source.to_owned(), point, target).await
    }

    /// Begins to write a table, as it was at some moment, to a folder in DynamoDB's export format.
    ///
    /// # Errors
    /// When the table does not exist, its history does not have the moment, or too much is on its way.
    pub async fn export_table(
        &self,
        source: &str,
        point: RestorePoint,
        target: ExportTarget,
    ) -> Result<Arc<Transfer>, RestoreError> {
        export::begin(self.shared(), source.to_owned(), point, target).await
    }

    /// Begins to make a new table from files in DynamoDB's export format. It can be used when it is no
    /// longer described as being restored; should the process end before, there is no such table.
    ///
    /// # Errors
    /// When the table exists or cannot be made, or too much is on its way.
    pub async fn import_table(
        &self,
        source: ImportSource,
        target: NewTable,
    ) -> Result<(TableDescription, Arc<Transfer>), RestoreError> {
        import::begin(self.shared(), source, target).await
    }

    /// Exports or imports in the order of their times.
    #[must_use]
    pub fn transfers(&self, kind: TransferKind) -> Vec<Arc<Transfer>> {
        transfers::all(self.shared(), kind)
    }

    #[must_use]
    pub fn transfer(&self, kind: TransferKind, id: &str) -> Option<Arc<Transfer>> {
        transfers::get(self.shared(), kind, id)
    }
}
