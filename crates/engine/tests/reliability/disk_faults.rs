//! Disks that fail, fill up or stop in the middle of a write.

use std::path::Path;
use std::process::Output;

use crate::child::{Plan, Role, read_acknowledged};
use crate::dice;
use crate::faulty_disk::{ENDED_BY_DISK, Fault, FaultyDisk, Kind};
use crate::verify::{self, Kept};

/// The number of points at which each test breaks the disk, spread over all operations.
const POINTS: u64 = 8;
const TRANSACTIONS: u64 = 20;

fn points() -> u64 {
    dice::from_env("HOMEPORT_FAULT_POINTS").unwrap_or(POINTS)
}

/// A data directory, and the acknowledgements that its children got.
struct Bench {
    room: tempfile::TempDir,
    disk: FaultyDisk,
    kept: Kept,
}

impl Bench {
    fn new() -> Self {
        Self::of(Kept::Plain)
    }

    fn of(kept: Kept) -> Self {
        let room = tempfile::tempdir().unwrap();
        let disk = FaultyDisk::compile(room.path());
        Self { room, disk, kept }
    }

    /// The number of operations of a kind in the whole workload.
    fn count(&self, role: Role, kind: Kind) -> u64 {
        let directory = self.room.path().join("counted");
        let tally = self.room.path().join("tally");
        let plan = Plan::new(role, &directory, &self.room.path().join("counted-told"))
            .writers(1, Some(TRANSACTIONS))
            .kept(self.kept);
        let output = self.disk.counting(plan, &directory, kind, &tally).run();
        assert_eq!(outcome(&output), "finished");
        let count = std::fs::read_to_string(&tally).unwrap().parse().unwrap();
        assert!(count > POINTS, "only {count} operations seen");
        count
    }

    /// Runs a child with a fault and checks the result; returns the child's output.
    fn meet(&self, name: &str, kind: Kind, fault: Fault, at: u64) -> String {
        let directory = self.room.path().join(name);
        let told = self.room.path().join(format!("{name}-told"));
        let plan = Plan::new(Role::MeetFault, &directory, &told)
            .writers(1, Some(TRANSACTIONS))
            .kept(self.kept);
        let output = self.disk.failing(plan, &directory, kind, fault, at).run();
        let context = format!("{fault:?} at {kind:?} {at}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!errors.contains("panicked"), "{context}: {errors}");
        let said = if output.status.code() == Some(ENDED_BY_DISK) {
            "ended".to_owned()
        } else {
            assert!(output.status.success(), "{context}: {errors}");
            outcome(&output)
        };
        println!("{context}: {said}");
        check(&directory, self.kept, &told, &context);
        said
    }

    /// Runs a child with a fault that ends once it is noticed; returns the child's output.
    fn outlive(&self, kind: Kind, fault: Fault, at: u64) -> String {
        let name = format!("{kind:?}-{fault:?}-{at}");
        let directory = self.room.path().join(&name);
        let told = self.room.path().join(format!("{name}-told"));
        let gone = self.room.path().join(format!("{name}-gone"));
        let plan = Plan::new(Role::OutliveFault, &directory, &told)
            .writers(1, Some(TRANSACTIONS))
            .kept(self.kept)
            .env("DISK_UNTIL", &gone);
        let output = self.disk.failing(plan, &directory, kind, fault, at).run();
        let context = format!("{fault:?} at {kind:?} {at}");
        assert!(output.status.success(), "{context}: {output:?}");
        let said = outcome(&output);
        println!("{context}: {said}");
        check(&directory, self.kept, &told, &context);
        said
    }

    /// Breaks the disk for a while during the last transactions.
    fn outlive_late(&self, kind: Kind, fault: Fault) {
        let count = self.count(Role::OutliveFault, kind);
        let said: Vec<_> = [count - 9, count - 4]
            .map(|at| self.outlive(kind, fault, at))
            .into();
        assert_some(&said, "recovered");
    }

    /// Breaks the disk at points spread over all operations of a kind.
    fn meet_everywhere(&self, kind: Kind, fault: Fault) -> Vec<String> {
        let count = self.count(Role::MeetFault, kind);
        let stride = (count / points()).max(1);
        (1..=count)
            .step_by(usize::try_from(stride).unwrap())
            .map(|at| self.meet(&format!("{kind:?}-{at}"), kind, fault, at))
            .collect()
    }
}

/// Checks the directory on a working disk: no acknowledged write is lost, no transaction is partial, and it
/// can be written again.
fn check(directory: &Path, kept: Kept, told: &Path, context: &str) {
    println!("checking after {context}");
    verify::check_directory(directory, kept, &read_acknowledged(told));
    let output = Plan::new(Role::MeetFault, directory, told)
        .writers(1, Some(2))
        .kept(kept)
        .run();
    assert_eq!(outcome(&output), "finished", "{context}: {output:?}");
    verify::check_directory(directory, kept, &read_acknowledged(told));
}

fn outcome(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .find_map(|line| line.split("outcome: ").nth(1))
        .unwrap_or_else(|| panic!("the child said nothing: {output:?}"))
        .to_owned()
}

fn assert_some(said: &[String], wanted: &str) {
    assert!(
        said.iter().any(|outcome| outcome == wanted),
        "no child came to {wanted:?}: {said:?}"
    );
}

#[test]
fn failing_writes_lose_nothing() {
    let said = Bench::new().meet_everywhere(Kind::Write, Fault::Broken);
    assert_some(&said, "refused");
}

#[test]
fn one_failed_write_refuses_all_later_ones() {
    let said = Bench::new().meet_everywhere(Kind::Write, Fault::BrokenOnce);
    assert_some(&said, "refused");
}

#[test]
fn failing_syncs_lose_nothing() {
    let said = Bench::new().meet_everywhere(Kind::Sync, Fault::Broken);
    assert_some(&said, "refused");
}

#[test]
fn one_failed_journal_sync_refuses_all_later_writes() {
    let said = Bench::new().meet_everywhere(Kind::JournalSync, Fault::BrokenOnce);
    assert_some(&said, "refused");
}

#[test]
fn one_failed_sync_anywhere_loses_nothing() {
    Bench::new().meet_everywhere(Kind::Sync, Fault::BrokenOnce);
}

#[test]
fn full_disk_loses_nothing() {
    let said = Bench::new().meet_everywhere(Kind::Any, Fault::Full);
    assert_some(&said, "refused");
}

#[test]
fn writes_resume_when_a_full_disk_has_space() {
    Bench::new().outlive_late(Kind::Write, Fault::Full);
}

#[test]
fn writes_resume_when_syncs_of_journals_work_again() {
    Bench::new().outlive_late(Kind::JournalSync, Fault::Broken);
}

#[test]
fn writes_resume_on_a_sealed_store() {
    Bench::of(Kept::Sealed).outlive_late(Kind::Write, Fault::Broken);
}

#[test]
fn writes_resume_when_file_descriptors_are_free() {
    let room = tempfile::tempdir().unwrap();
    let (directory, told) = (room.path().join("starved"), room.path().join("told"));
    let plan = Plan::new(Role::StarveDescriptors, &directory, &told).descriptors(256);
    let output = plan.run();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(outcome(&output), "recovered");
    verify::check_directory(&directory, Kept::Plain, &read_acknowledged(&told));
}

#[test]
fn crash_inside_any_write_leaves_complete_transactions() {
    let said = Bench::new().meet_everywhere(Kind::Write, Fault::Torn);
    assert_some(&said, "ended");
}

#[test]
fn crash_before_any_operation_leaves_complete_transactions() {
    let said = Bench::new().meet_everywhere(Kind::Any, Fault::Gone);
    assert_some(&said, "ended");
}

#[test]
fn failing_writes_of_a_sealed_store_lose_nothing() {
    let said = Bench::of(Kept::Sealed).meet_everywhere(Kind::Write, Fault::Broken);
    assert_some(&said, "refused");
}

#[test]
fn crash_before_any_operation_leaves_a_sealed_store_usable() {
    let said = Bench::of(Kept::Sealed).meet_everywhere(Kind::Any, Fault::Gone);
    assert_some(&said, "ended");
}
