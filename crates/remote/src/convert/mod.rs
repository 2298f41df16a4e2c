//! Conversions between this workspace's types and the SDK's: items, expressions and errors.

pub(crate) mod expressions;
pub(crate) mod failure;
pub(crate) mod value;
