//! A process that is killed while it writes.

use homeport_engine::Durability;

use crate::child::{Plan, Role, read_acknowledged};
use crate::dice::{self, Dice};
use crate::verify::{self, Kept};

const ROUNDS: u64 = 8;

#[test]
fn relaxed_acknowledged_writes_survive_a_kill() {
    kill_often(Durability::Relaxed, Kept::Plain, 2);
}

#[test]
fn acknowledged_transactions_survive_a_kill() {
    kill_often(Durability::Sync, Kept::Plain, ROUNDS);
}

#[test]
fn sealed_acknowledged_transactions_survive_a_kill() {
    kill_often(Durability::Sync, Kept::Sealed, ROUNDS / 2);
}

fn kill_often(durability: Durability, kept: Kept, rounds: u64) {
    let seed = dice::seed();
    println!("HOMEPORT_SEED={seed}");
    let mut dice = Dice::new(seed);
    let room = tempfile::tempdir().unwrap();
    let directory = room.path().join("data");
    let acknowledged = room.path().join("acknowledged");
    for round in 0..dice::from_env("HOMEPORT_KILL_ROUNDS").unwrap_or(rounds) {
        let before = read_acknowledged(&acknowledged).len();
        let mut plan = Plan::new(Role::Write, &directory, &acknowledged)
            .writers(4, None)
            .kept(kept);
        if durability == Durability::Relaxed {
            plan = plan.relaxed();
        }
        let mut child = plan.start();
        child.wait_for_acknowledged(before + 1 + dice.below(300));
        child.kill();
        let told = read_acknowledged(&acknowledged);
        println!("round {round}: {} acknowledged so far", told.len());
        verify::check_directory(&directory, kept, &told);
    }
}
