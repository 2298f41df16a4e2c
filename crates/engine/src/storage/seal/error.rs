//! Errors about master keys and sealed files.

use std::path::PathBuf;

use crate::storage::seal::master::Fingerprint;

/// Why a key is unusable, or sealed data cannot be opened with it.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    #[error(
        "{} is sealed: give the master key with fingerprint {wanted} (--master-key-file, --master-key-command or HOMEPORT_MASTER_KEY)",
        .path.display()
    )]
    KeyMissing { path: PathBuf, wanted: Fingerprint },
    #[error(
        "{} is sealed under the master key with fingerprint {wanted}, but the given key has fingerprint {given}",
        .path.display()
    )]
    OtherKey {
        path: PathBuf,
        wanted: Fingerprint,
        given: Fingerprint,
    },
    #[error(
        "a master key is given, but the data directory {} is not sealed: create a sealed copy with `homeport encryption seal`, or omit the key",
        .0.display()
    )]
    NotSealed(PathBuf),
    #[error(
        "the data directory {} is sealed, but its keyring is missing: put the file `keyring` back, from a copy of this directory",
        .0.display()
    )]
    KeyringMissing(PathBuf),
    #[error("{} is damaged: {reason}", .path.display())]
    Damaged { path: PathBuf, reason: &'static str },
    #[error("{} is in a format that a newer Homeport wrote", .0.display())]
    NewerFormat(PathBuf),
    #[error(
        "{} has {max} data keys, one for each start that wrote something, which is the maximum: create a copy with new keys with `homeport encryption seal`",
        .path.display()
    )]
    KeyringFull { path: PathBuf, max: usize },
    #[error(
        "{0} cannot be used as a master key: it must be 32 bytes, as 64 hexadecimal digits or in base64"
    )]
    NotAKey(&'static str),
    #[error("cannot get random bytes from the operating system")]
    NoRandomness,
    #[error("cannot read or write {}", .path.display())]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
}
