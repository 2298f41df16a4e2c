//! Why the key-value store, or what seals its values, cannot do what is asked.

use crate::seal::error::SealError;
use crate::vault::UserKey;

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
    /// A sealed value that is not what was sealed for this place. Its key can be read all the same.
    #[error(
        "a value in {keyspace} does not open: it was damaged, changed or put in another's place"
    )]
    Unopened { keyspace: String, key: UserKey },
}

impl Error {
    /// Whether what was asked for is damaged, while the rest may be whole.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self, Self::Unopened { .. })
    }

    /// Whether a block of a table file is damaged. All its entries are lost, with their keys.
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
