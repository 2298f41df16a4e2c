//! The preloaded library that fails or records what a child does to its disk.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::child::Plan;

/// What the child ends with when the library ends it.
pub(crate) const ENDED_BY_DISK: i32 = 70;

/// The compiled library.
pub(crate) struct FaultyDisk(PathBuf);

/// Which operations are counted and meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Write,
    Sync,
    /// Syncs of journals: what acknowledgements wait for.
    JournalSync,
    Any,
}

/// What happens to the operation that was meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It and all later ones fail.
    Broken,
    /// It fails, and the next one works again.
    BrokenOnce,
    /// The disk is full.
    Full,
    /// Half of a write, and the process ends.
    Torn,
    /// The process ends before it.
    Gone,
}

impl FaultyDisk {
    /// Compiles the library into `directory`.
    pub(crate) fn compile(directory: &Path) -> Self {
        let library = directory.join("faultdisk.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reliability/faultdisk.c");
        let status = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-o"])
            .arg(&library)
            .arg(source)
            .args(["-ldl", "-lpthread"])
            .status()
            .expect("a C compiler, `cc`, is needed for the tests that break disks");
        assert!(status.success(), "faultdisk.c does not compile");
        Self(library)
    }

    /// Lets a child run on this disk and count its operations of a kind into `tally`.
    pub(crate) fn counting(&self, plan: Plan, directory: &Path, kind: Kind, tally: &Path) -> Plan {
        plan.env("LD_PRELOAD", &self.0)
            .env("DISK_DIR", directory)
            .env("DISK_KIND", kind.name())
            .env("DISK_TALLY", tally)
    }

    /// Lets the `at`-th operation of a kind, counted from 1, go wrong.
    pub(crate) fn failing(
        &self,
        plan: Plan,
        directory: &Path,
        kind: Kind,
        fault: Fault,
        at: u64,
    ) -> Plan {
        let how = match fault {
            Fault::Broken | Fault::BrokenOnce => "eio",
            Fault::Full => "enospc",
            Fault::Torn => "torn",
            Fault::Gone => "exit",
        };
        let plan = plan
            .env("LD_PRELOAD", &self.0)
            .env("DISK_DIR", directory)
            .env("DISK_KIND", kind.name())
            .env("DISK_DO", how)
            .env("DISK_AT", at.to_string());
        if fault == Fault::BrokenOnce {
            plan.env("DISK_ONCE", "1")
        } else {
            plan
        }
    }

    /// Records what the child does to the disk, and when it acknowledges, into `log`.
    pub(crate) fn recording(
        &self,
        plan: Plan,
        directory: &Path,
        acknowledged: &Path,
        log: &Path,
    ) -> Plan {
        plan.env("LD_PRELOAD", &self.0)
            .env("DISK_DIR", directory)
            .env("DISK_ACKS", acknowledged)
            .env("DISK_LOG", log)
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Sync => "sync",
            Self::JournalSync => "journal-sync",
            Self::Any => "any",
        }
    }
}
