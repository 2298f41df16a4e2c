//! A change of the master key that is interrupted by a crash or a failing disk.

use std::path::Path;

use homeport_engine::{Engine, OpenError, Options, SealError};

use crate::child::{Plan, Role, read_acknowledged};
use crate::faulty_disk::{ENDED_BY_DISK, Fault, FaultyDisk, Kind};
use crate::verify::{self, Kept};

#[test]
fn interrupted_master_key_change_leaves_one_working_key() {
    let room = tempfile::tempdir().unwrap();
    let disk = FaultyDisk::compile(room.path());
    let (directory, told) = (room.path().join("data"), room.path().join("told"));
    let filled = Plan::new(Role::Write, &directory, &told)
        .writers(2, Some(10))
        .kept(Kept::Sealed)
        .run();
    assert!(filled.status.success(), "{filled:?}");
    let told = read_acknowledged(&told);
    assert_eq!(told.len(), 20);
    let nowhere = room.path().join("nowhere");
    let mut now = Kept::Sealed;
    let mut changed = 0;
    for (kind, fault) in [
        (Kind::Any, Fault::Gone),
        (Kind::Write, Fault::Torn),
        (Kind::Any, Fault::BrokenOnce),
    ] {
        let rotate = |kept| Plan::new(Role::Rotate, &directory, &nowhere).kept(kept);
        let tally = room.path().join(format!("tally-{kind:?}-{fault:?}"));
        let counted = disk.counting(rotate(now), &directory, kind, &tally).run();
        assert!(counted.status.success(), "{counted:?}");
        now = now.rotated();
        let count: u64 = std::fs::read_to_string(&tally).unwrap().parse().unwrap();
        assert!(count >= 1, "{kind:?} happens {count} times");
        for at in 1..=count {
            let output = disk.failing(rotate(now), &directory, kind, fault, at).run();
            let context = format!("{fault:?} at {kind:?} {at} of {count}");
            let ended = output.status.code() == Some(ENDED_BY_DISK);
            assert!(ended || output.status.success(), "{context}: {output:?}");
            let after = key_of(&directory, &context);
            println!("{context}: {now:?}, then {after:?}");
            changed += u32::from(after != now);
            now = after;
            verify::check_directory(&directory, now, &told);
        }
    }
    assert!(changed > 0, "no fault came after the change");
}

/// The one key that opens the directory.
fn key_of(directory: &Path, context: &str) -> Kept {
    let opens = |kept: Kept| {
        let options = Options {
            master_key: kept.master_key(),
            ..verify::options()
        };
        match Engine::open(directory, options) {
            Ok(_) => true,
            Err(OpenError::Seal(SealError::OtherKey { .. })) => false,
            Err(error) => panic!("{context}: {error}"),
        }
    };
    match (opens(Kept::Sealed), opens(Kept::SealedAnew)) {
        (true, false) => Kept::Sealed,
        (false, true) => Kept::SealedAnew,
        both => panic!("{context}: {both:?}"),
    }
}
