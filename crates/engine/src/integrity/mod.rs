//! Whether a data directory is complete: what must be there is written down outside of the journals
//! (`mark`, `contents`), kept up to date while the store is open (`marks`), and compared before it is
//! opened (`verify`).

pub(crate) mod contents;
pub(crate) mod mark;
pub(crate) mod marks;
pub(crate) mod set_aside;
pub(crate) mod verify;
pub(crate) mod view;
