//! Why something sealed cannot be opened, or something that is not sealed is not taken for it.

use std::path::PathBuf;

use crate::seal::master::Fingerprint;

/// What is wrong with a key, or with what it is to open.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    #[error(
        "{} is sealed: give the master key with fingerprint {wanted} (--master-key-file, --master-key-command or HOMEPORT_MASTER_KEY)",
        .path.display()
    )]
    KeyMissing { path: PathBuf, wanted: Fingerprint },
    #[error(
        "{} is sealed under the master key with fingerprint {wanted}, but the one that is given has {given}",
        .path.display()
    )]
    OtherKey {
        path: PathBuf,
        wanted: Fingerprint,
        given: Fingerprint,
    },
    #[error(
        "a master key is given, but the data directory {} is not sealed: make a sealed copy of it with `homeport encryption seal`, or leave the key out",
        .0.display()
    )]
    NotSealed(PathBuf),
    #[error(
        "the data directory {} is sealed, but its keyring is gone: put the file `keyring` back, from a copy of this directory",
        .0.display()
    )]
    KeyringMissing(PathBuf),
    #[error("{} is damaged: {reason}", .path.display())]
    Damaged { path: PathBuf, reason: &'static str },
    #[error("{} is in a format that a newer Homeport wrote", .0.display())]
    NewerFormat(PathBuf),
    #[error(
        "{} has {max} data keys, one for each start that wrote something, and takes no more: make a copy with new keys with `homeport encryption seal`",
        .path.display()
    )]
    KeyringFull { path: PathBuf, max: usize },
    #[error(
        "{0} cannot be used as a master key: it must be 32 bytes, as 64 hexadecimal digits or in base64"
    )]
    NotAKey(&'static str),
    #[error("no random bytes can be had from the operating system")]
    NoRandomness,
    #[error("cannot read or write {}", .path.display())]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
}
