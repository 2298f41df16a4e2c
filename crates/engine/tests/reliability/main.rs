//! What the engine promises when processes die, disks fail and many callers come at once.
//!
//! Most of these tests watch a child process: this very binary, started again to run only
//! [`child::acts_as_the_child_of_another_test`]. Everything random comes from a seed that a failure
//! prints; `HOMEPORT_SEED` sets it.

#![allow(clippy::unwrap_used)]

mod child;
mod concurrency;
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
