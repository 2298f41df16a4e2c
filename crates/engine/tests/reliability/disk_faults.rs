//! Disks that fail, fill up or stop in the middle of a write.

use std::path::Path;
use std::process::Output;

use crate::child::{Plan, Role, read_acknowledged};
use crate::dice;
use crate::faulty_disk::{ENDED_BY_DISK, Fault, FaultyDisk, Kind};
use crate::verify::{self, Kept};

/// Points at which each test breaks the disk, spread over all that there are.
const POINTS: u64 = 8;
const TRANSACTIONS: u64 = 20;

fn points() -> u64 {
    dice::from_env("HOMEPORT_FAULT_POINTS").unwrap_or(POINTS)
}

/// A data directory, and what the children on it were told.
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

    /// Operations of a kind that the whole of the work takes.
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

    /// Lets one child meet a fault and checks what is left; answers with what the child said.
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

    /// Lets one child meet a fault that ends when it has been noticed; answers with what the child said.
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

/// The same directory on a sound disk: nothing told is lost, nothing is there in part, and it can
/// be written again.
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
fn a_disk_whose_writes_fail_refuses_writes_and_loses_nothing() {
    let said = Bench::new().meet_everywhere(Kind::Write, Fault::Broken);
    assert_some(&said, "refused");
}

#[test]
fn one_failed_write_is_enough_to_refuse_all_later_ones() {
    let said = Bench::new().meet_everywhere(Kind::Write, Fault::BrokenOnce);
    assert_some(&said, "refused");
}

#[test]
fn a_disk_whose_syncs_fail_refuses_writes_and_loses_nothing() {
    let said = Bench::new().meet_everywhere(Kind::Sync, Fault::Broken);
    assert_some(&said, "refused");
}

#[test]
fn one_failed_sync_of_a_journal_is_enough_to_refuse_all_later_writes() {
    let said = Bench::new().meet_everywhere(Kind::JournalSync, Fault::BrokenOnce);
    assert_some(&said, "refused");
}

#[test]
fn one_failed_sync_anywhere_loses_nothing() {
    Bench::new().meet_everywhere(Kind::Sync, Fault::BrokenOnce);
}

#[test]
fn a_full_disk_refuses_writes_and_loses_nothing() {
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
fn writes_resume_when_descriptors_are_free_again() {
    let room = tempfile::tempdir().unwrap();
    let (directory, told) = (room.path().join("starved"), room.path().join("told"));
    let plan = Plan::new(Role::StarveDescriptors, &directory, &told).descriptors(256);
    let output = plan.run();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(outcome(&output), "recovered");
    verify::check_directory(&directory, Kept::Plain, &read_acknowledged(&told));
}

#[test]
fn a_crash_in_the_middle_of_any_write_leaves_whole_transactions() {
    let said = Bench::new().meet_everywhere(Kind::Write, Fault::Torn);
    assert_some(&said, "ended");
}

#[test]
fn a_crash_before_any_operation_leaves_whole_transactions() {
    let said = Bench::new().meet_everywhere(Kind::Any, Fault::Gone);
    assert_some(&said, "ended");
}

#[test]
fn a_sealed_store_loses_nothing_to_a_disk_whose_writes_fail() {
    let said = Bench::of(Kept::Sealed).meet_everywhere(Kind::Write, Fault::Broken);
    assert_some(&said, "refused");
}

#[test]
fn a_crash_before_any_operation_leaves_a_sealed_store_that_opens() {
    let said = Bench::of(Kept::Sealed).meet_everywhere(Kind::Any, Fault::Gone);
    assert_some(&said, "ended");
}
