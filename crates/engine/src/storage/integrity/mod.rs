//! Checks that a data directory is complete. The required contents are recorded outside the journals (`mark`,
//! `contents`), updated while the store is open (`marks`), and compared with the directory before it is
//! opened (`verify`).

pub(crate) mod contents;
pub(crate) mod mark;
pub(crate) mod marks;
pub(crate) mod set_aside;
pub(crate) mod verify;
pub(crate) mod view;
