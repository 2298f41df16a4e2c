//! What requests carry: path parameters, queries, bodies and the JSON values in them. Errors are
//! [`Problem`](crate::problem::Problem)s.

mod address;
mod body;
mod decimal;
mod json_members;
pub(crate) mod json_object;
mod page;
pub(crate) mod plain_json;
mod time_range;
mod whole_number;

pub(crate) use address::{PathPart, UrlQuery, optional_time, parse_time};
pub(crate) use body::{BODY_BYTES_MAX, Body, JsonBody, parse_object};
pub(crate) use decimal::Decimal;
pub(crate) use json_members::Members;
pub(crate) use json_object::{Object, present};
pub(crate) use page::{PageQuery, check_limit, parse_cursor};
pub(crate) use time_range::TimeRange;
pub(crate) use whole_number::WholeNumber;
