//! What requests carry: path parameters, queries, bodies and the JSON values in them. Errors are
//! [`Problem`](crate::problem::Problem)s.

mod address;
mod body;
mod decimal;
mod json_members;
mod known_parameters;
mod page;
pub(crate) mod plain_json;
mod time_range;
mod times;
mod versions;
mod whole_number;

pub(crate) use address::{PathPart, UrlQuery};
pub(crate) use body::{BODY_BYTES_MAX, Body, JsonBody, parse_object};
pub(crate) use decimal::Decimal;
pub(crate) use homeport_systems::json_object::{self, Object, present};
pub(crate) use json_members::Members;
pub(crate) use known_parameters::{KnownParameters, reject_unknown_parameters};
pub(crate) use page::{PageQuery, check_limit, parse_cursor};
pub(crate) use time_range::{MountainTimeRange, TimeRange};
pub(crate) use times::{RequestTimes, check_order};
pub(crate) use versions::{entity_tag, expected_version, parse_version};
pub(crate) use whole_number::WholeNumber;
