//! Operations on the keys of a data directory that is not open: reading their status, and changing the master
//! key.

use std::path::Path;

use crate::error::OpenError;
use crate::storage::directory;
use crate::storage::seal::error::SealError;
use crate::storage::seal::keyring::Keyring;
use crate::storage::seal::master::{Fingerprint, MasterKey};

/// The properties of a sealed directory that are readable without its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealStatus {
    /// The fingerprint of its master key.
    pub fingerprint: Fingerprint,
    /// The number of data keys: one for each start that wrote something.
    pub data_keys: usize,
    /// When the oldest and the newest data key were created.
    pub oldest_at_ms: Option<i64>,
    pub newest_at_ms: Option<i64>,
}

/// The seal status of a data directory; `None` if it is not sealed. This also works while it is open.
///
/// # Errors
/// Fails if there is no data directory, or its keyring is damaged.
pub fn seal_status(path: &Path) -> Result<Option<SealStatus>, OpenError> {
    match directory::read_format(path)? {
        None => Err(OpenError::NotADataDirectory {
            path: path.to_owned(),
            reason: "it has no FORMAT file".to_owned(),
        }),
        Some(format) if format.is_sealed => {
            let keyring = Keyring::read_unverified(path)?
                .ok_or_else(|| SealError::KeyringMissing(path.to_owned()))?;
            let created = |key: Option<&crate::storage::seal::keyring::Wrapped>| {
                key.map(|key| key.created_at_ms)
            };
            Ok(Some(SealStatus {
                fingerprint: keyring.fingerprint,
                data_keys: keyring.keys.len(),
                oldest_at_ms: created(keyring.keys.first()),
                newest_at_ms: created(keyring.keys.last()),
            }))
        }
        Some(_) => Ok(None),
    }
}

/// Changes the master key of a data directory. No data is rewritten: only the data keys are wrapped again,
/// atomically. After a crash, the directory has either the old or the new master key.
///
/// # Errors
/// Fails if the directory is open or not sealed, `from` is not its key, or it cannot be written.
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
    // An open store would write its keyring with the old key.
    let _lock = directory::lock(path)?;
    let keyring = directory::unlock(path, Some(from))?;
    keyring.rewrapped(path, from, to)?.write(path, to)?;
    seal_status(path)?.ok_or_else(|| SealError::NotSealed(path.to_owned()).into())
}
