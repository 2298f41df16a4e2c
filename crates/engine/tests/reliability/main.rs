//! The engine's guarantees when processes die, disks fail and many callers are active.
//!
//! Most of these tests watch a child process: this binary, started again to run only
//! [`child::acts_as_the_child_of_another_test`]. All randomness comes from a seed that a failure prints;
//! `HOMEPORT_SEED` sets it.

#![allow(clippy::unwrap_used)]

mod child;
mod concurrency;
mod copy;
mod damage;
mod dice;
mod disk_faults;
mod faulty_disk;
mod incomplete;
mod inspect;
mod kill;
mod model;
mod power_cut;
mod random_operations;
mod requests;
mod restarts;
mod rotation;
mod verify;
mod workload;
