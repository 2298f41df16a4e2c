//! Tables and their settings: definitions, descriptions, tags, time to live, limits.

pub(crate) mod contributor_insights;
pub(crate) mod create_table;
pub(crate) mod delete_table;
pub(crate) mod describe_table;
pub(crate) mod describe_time_to_live;
pub(crate) mod list_tables;
pub(crate) mod service;
pub(crate) mod table_input;
pub(crate) mod tags;
pub(crate) mod update_table;
pub(crate) mod update_time_to_live;
