//! The preloaded library that injects disk faults into a child or records its disk operations.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::child::Plan;

/// The exit code when the library ends the child.
pub(crate) const ENDED_BY_DISK: i32 = 70;

/// The compiled library.
pub(crate) struct FaultyDisk(PathBuf);

/// The operations that are counted and affected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Write,
    Sync,
    /// Syncs of journals, which acknowledgements wait for.
    JournalSync,
    Any,
}

/// The fault of the affected operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It and all later ones fail.
    Broken,
    /// It fails, and later ones succeed.
    BrokenOnce,
    /// The disk is full.
    Full,
    /// Half of a write happens, and the process ends.
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

    /// Runs a child on this disk and counts its operations of a kind in `tally`.
    pub(crate) fn counting(&self, plan: Plan, directory: &Path, kind: Kind, tally: &Path) -> Plan {
        plan.env("LD_PRELOAD", &self.0)
            .env("DISK_DIR", directory)
            .env("DISK_KIND", kind.name())
            .env("DISK_TALLY", tally)
    }

    /// Breaks the `at`-th operation of a kind, counted from 1.
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

    /// Records the child's disk operations and acknowledgements in `log`.
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
