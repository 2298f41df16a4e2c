//! Encryption at rest: the master key, the keyring of data keys that it wraps, and sealed values and files.
//! Values are sealed by [`crate::storage::vault`], the only access to the key-value store; files are sealed
//! by [`file`]. `docs/adr/019-encryption-at-rest.md` says what this protects against.

pub(crate) mod copy;
pub(crate) mod error;
pub(crate) mod file;
#[cfg(test)]
mod kept_format;
pub(crate) mod keyring;
pub(crate) mod manage;
pub(crate) mod master;
pub(crate) mod sealer;
