//! What only the console needs: sessions of people, and the page itself.

mod sessions;

pub use sessions::{SESSION_SECS_DEFAULT, Sessions};

/// What the console's routes work with.
#[derive(Debug)]
pub struct Console {
    pub sessions: Sessions,
}
