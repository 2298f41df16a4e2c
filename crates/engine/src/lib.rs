//! The embedded store: tables with DynamoDB's semantics on a local disk.
//!
//! One thread decides writes (`commit::committer`), reads use snapshots (`read`), and every change of an
//! item goes through one function (`commit::group`). Only `storage::vault` names the key-value store
//! below, and none of its types leave the crate.

mod archive;
mod catalogue;
mod changes;
mod commit;
mod engine;
mod error;
mod expiry;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod metrics;
mod options;
mod read;
mod seam;
mod shared;
mod storage;
mod threads;

pub use archive::backup::{BackupError, BackupSummary, restore};
pub use archive::export::{ExportTarget, Summarise};
pub use archive::folder::{EntryKind, Folder};
pub use archive::history::{HISTORY_DAYS_MAX, RestorePoint};
pub use archive::import::{Compression, ImportSource};
pub use archive::restoring::{NewTable, RestoreError};
pub use archive::table_backups::{TableBackup, TableBackupError};
pub use archive::transfers::{Transfer, TransferKind};
pub use catalogue::table::{DataSize, History, IndexState, TableDescription, TableSize, TableView};
pub use changes::log::{Change, ChangeKind, ChangePage};
pub use changes::stream_read::{Shard, ShardPage, ShardPosition, Stream, StreamError};
pub use changes::streams::{ShardId, StreamId};
pub use commit::commit_clock::{CLOCK_LEAD_MAX_MS, CLOCK_STEADY_MS, ClockStatus};
pub use commit::cost::{IndexCost, WriteCost};
pub use commit::write::{TransactionResult, Written};
pub use engine::{CHANGES_PAGE_MAX, Condition, Engine};
pub use error::{OpenError, TableError};
pub use expiry::sweep::Swept;
pub use metrics::MetricsSnapshot;
pub use options::{Durability, Options};
pub use read::{Attributes, StoredPage};
pub use storage::check::{CheckReport, check_directory};
pub use storage::disk_space::{Disk, SystemDisk};
pub use storage::permissions::{
    create_file as create_private_file, keep_new_files_private, tighten_directory,
};
pub use storage::record::StoredItem;
pub use storage::salvage::{SalvageReport, salvage};
pub use storage::seal::copy::{Copied, copy_sealed};
pub use storage::seal::error::SealError;
pub use storage::seal::manage::{SealStatus, change_master_key, seal_status};
pub use storage::seal::master::{Fingerprint, MasterKey};

// Callers that open an engine choose its clock.
pub use homeport_store::{Clock, ManualClock, SystemClock};
