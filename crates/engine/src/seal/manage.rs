//! What can be done with the keys of a data directory that nobody has open: looking at them, and
//! changing the master key.

use std::path::Path;

use crate::directory;
use crate::error::OpenError;
use crate::seal::error::SealError;
use crate::seal::keyring::Keyring;
use crate::seal::master::{Fingerprint, MasterKey};

/// What can be said about a sealed directory without its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealStatus {
    /// The master key that opens it.
    pub fingerprint: Fingerprint,
    /// Data keys: one for each start that wrote something.
    pub data_keys: usize,
    /// When the oldest and the newest data key were made.
    pub oldest_at_ms: Option<i64>,
    pub newest_at_ms: Option<i64>,
}

/// How a data directory is sealed; nothing, where it is not. Also while it is open.
///
/// # Errors
/// When there is no data directory, or its keyring is damaged.
pub fn seal_status(path: &Path) -> Result<Option<SealStatus>, OpenError> {
    match directory::read_format(path)? {
        None => Err(OpenError::NotADataDirectory {
            path: path.to_owned(),
            reason: "it has no FORMAT file".to_owned(),
        }),
        Some(format) if format.is_sealed => {
            let keyring =
                Keyring::look(path)?.ok_or_else(|| SealError::KeyringMissing(path.to_owned()))?;
            let made =
                |key: Option<&crate::seal::keyring::Wrapped>| key.map(|key| key.created_at_ms);
            Ok(Some(SealStatus {
                fingerprint: keyring.fingerprint,
                data_keys: keyring.keys.len(),
                oldest_at_ms: made(keyring.keys.first()),
                newest_at_ms: made(keyring.keys.last()),
            }))
        }
        Some(_) => Ok(None),
    }
}

/// Has a data directory opened by another master key from now on. No data is rewritten: the data keys
/// are wrapped anew, in one step. A crash leaves the directory to the one key or to the other.
///
/// # Errors
/// When the directory is open or not sealed, `from` is not its key, or it cannot be written.
pub fn change_master_key(
    path: &Path,
    from: &MasterKey,
    to: &MasterKey,
) -> Result<SealStatus, OpenError> {
    match directory::read_format(path)? {
        Some(format) if format.is_sealed => {}
        Some(_) => return Err(SealError::NotSealed(path.to_owned()).into()),
        None => {
            return Err(OpenError::NotADataDirectory {
                path: path.to_owned(),
                reason: "it has no FORMAT file".to_owned(),
            });
        }
    }
    // Whoever has it open would write its keyring with the old key.
    let _lock = directory::lock(path)?;
    let keyring = directory::unlock(path, Some(from))?;
    keyring.rewrapped(path, from, to)?.write(path, to)?;
    seal_status(path)?.ok_or_else(|| SealError::NotSealed(path.to_owned()).into())
}
