//! The opened store and what this machine keeps for it: master key, secrets, file descriptors.

pub(crate) mod backend;
pub(crate) mod descriptors;
pub(crate) mod master_key;
pub(crate) mod secrets;
