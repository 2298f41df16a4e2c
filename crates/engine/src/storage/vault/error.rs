//! Errors of the key-value store and of the sealing of its values.

use crate::storage::seal::error::SealError;
use crate::storage::vault::UserKey;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Store(#[from] fjall::Error),
    #[error("the store is being reopened after a failed write: try again in a moment")]
    Closed,
    #[error("the store lacks writes that were acknowledged: restore a backup")]
    Incomplete,
    #[error(transparent)]
    Seal(#[from] SealError),
    /// A sealed value that does not belong to this key. Its key is still readable.
    #[error(
        "a value in {keyspace} cannot be decrypted: it was damaged, modified or moved from another key"
    )]
    Unopened { keyspace: String, key: UserKey },
}

impl Error {
    /// Whether only the requested value is damaged.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self, Self::Unopened { .. })
    }

    /// Whether a block of a table file is damaged. All its entries are lost, including their keys.
    pub(crate) fn is_damaged_block(&self) -> bool {
        use fjall::LsmError;
        let Self::Store(fjall::Error::Storage(error)) = self else {
            return false;
        };
        matches!(
            error,
            LsmError::ChecksumMismatch { .. }
                | LsmError::Decompress(_)
                | LsmError::InvalidTag(_)
                | LsmError::InvalidTrailer
                | LsmError::InvalidHeader(_)
        )
    }
}
