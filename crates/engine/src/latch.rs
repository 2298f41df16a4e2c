//! Once the journal could not be written, nothing more is: what is on disk is no longer known.
//! Reads go on.

use std::sync::OnceLock;

use homeport_store::StoreError;

#[derive(Debug, Default)]
pub(crate) struct Latch(OnceLock<String>);

impl Latch {
    /// Refuses all writes from now on. The first reason is kept.
    pub(crate) fn close(&self, reason: &str) {
        if self.0.set(reason.to_owned()).is_ok() {
            tracing::error!(reason, "writing failed: refusing writes until a restart");
        }
    }

    /// Why writes are refused, if they are.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match self.reason() {
            Some(reason) => Err(StoreError::Unavailable(format!(
                "writing to the data directory failed and is refused until a restart: {reason}"
            ))),
            None => Ok(()),
        }
    }
}
