//! The data directory: the key-value store, encryption, the checks before opening, and byte layouts.

pub(crate) mod check;
pub(crate) mod directory;
pub(crate) mod disk_space;
pub(crate) mod extra_files;
pub(crate) mod filter;
pub(crate) mod integrity;
pub(crate) mod journal;
pub(crate) mod latch;
pub(crate) mod layout;
pub(crate) mod opening;
pub(crate) mod permissions;
pub(crate) mod record;
pub(crate) mod reopen;
pub(crate) mod salvage;
pub(crate) mod seal;
pub(crate) mod vault;
pub(crate) mod watch;
