//! The embedded store: tables with DynamoDB's semantics on a local disk.
//!
//! One thread writes (`committer`), everyone reads from snapshots (`read`), and every change of an
//! item goes through one function (`group`). Only `vault` names the key-value store below, and none of
//! its types leave the crate.

mod backup;
mod beside;
mod catalogue;
mod changes;
mod check;
mod commit_clock;
mod committer;
mod copying;
mod cost;
mod directory;
mod disk_room;
mod engine;
mod error;
mod evaluate;
mod expiring;
mod expiry;
mod export;
mod extent;
mod feed;
mod filter;
mod folder;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod group;
mod history;
mod import;
mod integrity;
mod jobs;
mod journal;
mod keyspaces;
mod latch;
mod layout;
mod metrics;
mod newest;
mod opening;
mod options;
mod past;
mod permissions;
mod prepare;
mod queue;
mod read;
mod record;
mod reopen;
mod restoring;
mod salvage;
mod seal;
mod seam;
mod shared;
mod sorting;
mod spares;
mod stream_read;
mod streams;
mod sweep;
mod table;
mod table_backups;
mod tables;
mod threads;
mod token_digest;
mod tokens;
mod transfers;
mod vault;
mod watch;
mod write;
mod writer;

pub use backup::{BackupError, BackupSummary, restore};
pub use changes::{Change, ChangeKind, ChangePage};
pub use check::{CheckReport, check_directory};
pub use commit_clock::{CLOCK_LEAD_MAX_MS, CLOCK_STEADY_MS, ClockStatus};
pub use cost::{IndexCost, WriteCost};
pub use disk_room::{Disk, SystemDisk};
pub use engine::{CHANGES_PAGE_MAX, Condition, Engine};
pub use error::{OpenError, TableError};
pub use export::{ExportTarget, Summarise};
pub use folder::{EntryKind, Folder};
pub use history::{HISTORY_DAYS_MAX, RestorePoint};
pub use import::{Compression, ImportSource};
pub use metrics::MetricsSnapshot;
pub use options::{Durability, Options};
pub use permissions::{
    create_file as create_private_file, keep_new_files_private, tighten_directory,
};
pub use read::{Attributes, StoredPage};
pub use record::StoredItem;
pub use restoring::{NewTable, RestoreError};
pub use salvage::{SalvageReport, salvage};
pub use seal::copy::{Copied, copy_sealed};
pub use seal::error::SealError;
pub use seal::manage::{SealStatus, change_master_key, seal_status};
pub use seal::master::{Fingerprint, MasterKey};
pub use stream_read::{Shard, ShardPage, ShardPosition, Stream, StreamError};
pub use streams::{ShardId, StreamId};
pub use sweep::Swept;
pub use table::{Extent, History, IndexState, TableDescription, TableExtent, TableView};
pub use table_backups::{TableBackup, TableBackupError};
pub use transfers::{Transfer, TransferKind};
pub use write::{TransactionDone, Written};

// Who opens an engine sets its clock.
pub use homeport_store::{Clock, ManualClock, SystemClock};
