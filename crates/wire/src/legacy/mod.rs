//! The parameters from before expressions: `Expected`, `AttributeUpdates`, `KeyConditions`, `QueryFilter`, `ScanFilter`,
//! `AttributesToGet` and `ConditionalOperator`.
//!
//! Each is checked as in DynamoDB and converted to a tree of the expression language. Only this module knows these parameters.

mod attribute_updates;
mod attributes_to_get;
mod conditional_operator;
mod conditions;
mod expected;
mod key_conditions;
mod operator;

pub(crate) use attribute_updates::{AttributeUpdates, failure, update};
pub(crate) use attributes_to_get::{AttributesToGet, constrain_names, projection};
pub(crate) use conditional_operator::join;
pub(crate) use conditions::{Conditions, check_filter_keys, check_values, constrain, filter};
pub(crate) use expected::{Expected, condition};
pub(crate) use key_conditions::{KeyConditions, partition};
