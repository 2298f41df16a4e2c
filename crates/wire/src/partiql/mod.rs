//! PartiQL statements over the engine: which item a write is for, which keys a read can use, and where a page goes on.
//!
//! `homeport_partiql` has read the text; what is decided here needs the tables.

mod keys;
mod next_token;
mod request;
mod select;
mod writes;

pub(crate) use keys::{Addressed, addressed, choices};
pub(crate) use next_token::{Resume, fingerprint};
pub(crate) use request::{StatementInput, constrain, old_on_failure, parameters, parse};
pub(crate) use select::{Reading, labelled, refuse_several};
pub(crate) use writes::{action, check_inserted_key, is_insert, target};
