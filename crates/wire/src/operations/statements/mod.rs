//! PartiQL statements: single ones, batches and transactions.

pub(crate) mod batch_execute_statement;
pub(crate) mod execute_statement;
pub(crate) mod execute_transaction;
