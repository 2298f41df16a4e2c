//! Tables and their settings: definitions, descriptions, tags, time to live, limits.

pub(crate) mod create_table;
pub(crate) mod delete_table;
pub(crate) mod describe_contributor_insights;
pub(crate) mod describe_endpoints;
pub(crate) mod describe_limits;
pub(crate) mod describe_table;
pub(crate) mod describe_time_to_live;
pub(crate) mod list_contributor_insights;
pub(crate) mod list_tables;
pub(crate) mod list_tags_of_resource;
pub(crate) mod table_input;
pub(crate) mod tag_resource;
pub(crate) mod untag_resource;
pub(crate) mod update_contributor_insights;
pub(crate) mod update_table;
pub(crate) mod update_time_to_live;
