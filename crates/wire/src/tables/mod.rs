//! Tables as clients see them: ARNs, settings beyond the schema, descriptions, backups, exports and imports.

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
