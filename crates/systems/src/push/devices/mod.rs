//! The devices of users, which apps register with their push tokens.

mod cleanup;
mod registration;
mod token_holder;

pub use cleanup::CleanedUp;
pub use registration::{Device, NewDevice, Registered};
