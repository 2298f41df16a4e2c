//! Removals in the background: what is below a removed item, and history that is older than its group's retention.

mod background;
mod housekeeping;
mod jobs;

pub use housekeeping::Housekept;
pub use jobs::Removal;
