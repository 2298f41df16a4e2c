//! PartiQL statements over the engine: the item that a write addresses, the keys that a read can use, and tokens of pages.
//!
//! `homeport_partiql` parses the text. This module makes the decisions that need the tables.

mod keys;
mod next_token;
mod request;
mod select;
mod writes;

pub(crate) use keys::{AddressError, Addressed, addressed, choices};
pub(crate) use next_token::{Resume, fingerprint};
pub(crate) use request::{
    StatementInput, constrain, constrain_list, old_on_failure, parameters, parse,
};
pub(crate) use select::{Reading, labelled, refuse_several};
pub(crate) use writes::{ActionError, action, check_inserted_key, is_insert, target};
