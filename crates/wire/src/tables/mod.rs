//! What tables are to clients: names with an ARN, settings beyond their schema, descriptions.

pub(crate) mod arn;
pub(crate) mod backup;
pub(crate) mod bucket;
pub(crate) mod definition;
pub(crate) mod description;
pub(crate) mod insights;
pub(crate) mod restore_window;
pub(crate) mod restored;
pub(crate) mod settings;
pub(crate) mod tags;
pub(crate) mod transfer;
pub(crate) mod warm_throughput;
