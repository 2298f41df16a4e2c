//! Checks and encodes a transaction before it is queued. This runs in the callers' own threads, in parallel.

use std::sync::Arc;

use homeport_item::Item;
use homeport_item::expression::{self, Condition, UpdateOperand};
use homeport_store::{
    Action, ReturnValues, StoreError, TRANSACTION_ACTIONS_MAX, TRANSACTION_SIZE_MAX_BYTES,
    Transaction,
};

use crate::catalogue::Catalogue;
use crate::catalogue::table::{KeyFrom, Table};
use crate::commit::token_digest;
use crate::storage::record;
use crate::storage::vault::{UserKey, UserValue};

/// The longest client token.
const TOKEN_LEN_MAX: usize = 36;
/// Size limit of a transaction that deletes and also writes while the disk is nearly full.
const DELETE_BYTES_MAX: usize = 16 * 1024;
/// Overhead of a queued action in the queue's size limit.
const ACTION_OVERHEAD_BYTES: usize = 256;

/// A transaction that is ready to be evaluated.
#[derive(Debug)]
pub(crate) struct PreparedTransaction {
    pub(crate) actions: Vec<PreparedAction>,
    pub(crate) token: Option<ClientToken>,
    /// Approximate size in memory and in the journal.
    pub(crate) bytes: usize,
}

#[derive(Debug)]
pub(crate) struct ClientToken {
    pub(crate) text: String,
    /// Digest of the whole transaction; a repeat has the same.
    pub(crate) digest: u128,
}

#[derive(Debug)]
pub(crate) struct PreparedAction {
    /// The table when the action was prepared; its key schema never changes.
    pub(crate) table: Arc<Table>,
    pub(crate) key: UserKey,
    pub(crate) write: PreparedWrite,
    pub(crate) condition: Option<Condition>,
    pub(crate) returning: ReturnValues,
    pub(crate) old_on_failure: bool,
    /// Whether to compute the cost, which requires reading the old item.
    pub(crate) measure: bool,
}

#[derive(Debug)]
pub(crate) enum PreparedWrite {
    Put(UserValue),
    /// The key attributes, for an item that does not exist yet, and the changes.
    Update(Item, expression::Update),
    Delete,
    Check,
}

impl PreparedTransaction {
    /// Whether the transaction may be written while the disk is nearly full: it deletes, and its other writes
    /// are small, for example a record of what to delete later.
    pub(crate) fn frees_space(&self) -> bool {
        let is_delete = |action: &PreparedAction| matches!(action.write, PreparedWrite::Delete);
        let is_check = |action: &PreparedAction| matches!(action.write, PreparedWrite::Check);
        self.actions.iter().any(is_delete)
            && (self.bytes <= DELETE_BYTES_MAX
                || self
                    .actions
                    .iter()
                    .all(|action| is_delete(action) || is_check(action)))
    }

    /// Sets whether every action reports its cost.
    pub(crate) fn measured(mut self, measure: bool) -> Self {
        for action in &mut self.actions {
            action.measure = measure;
        }
        self
    }
}

/// Why a transaction cannot be prepared.
#[derive(Debug)]
pub(crate) enum PrepareError {
    /// The action at this position is invalid.
    Action(usize, StoreError),
    Whole(StoreError),
}

impl From<PrepareError> for StoreError {
    fn from(unprepared: PrepareError) -> Self {
        match unprepared {
            PrepareError::Action(_, error) | PrepareError::Whole(error) => error,
        }
    }
}

/// Checks and encodes a transaction.
pub(crate) fn transaction(
    catalogue: &Catalogue,
    transaction: Transaction,
) -> Result<PreparedTransaction, PrepareError> {
    let invalid = |text: &str| Err(PrepareError::Whole(StoreError::invalid(text)));
    if transaction.actions.is_empty() {
        return invalid("a transaction must have at least one action");
    }
    if transaction.actions.len() > TRANSACTION_ACTIONS_MAX {
        return invalid("a transaction must have at most 100 actions");
    }
    let token = match &transaction.token {
        Some(text) if text.is_empty() || text.len() > TOKEN_LEN_MAX => {
            return invalid("a client request token must be 1 to 36 characters long");
        }
        Some(text) => Some(ClientToken {
            text: text.clone(),
            digest: token_digest::digest(&transaction.actions),
        }),
        None => None,
    };
    let mut bytes = 0;
    let mut actions = Vec::with_capacity(transaction.actions.len());
    for (at, action) in transaction.actions.into_iter().enumerate() {
        let (prepared, size) =
            prepare_action(catalogue, action).map_err(|error| PrepareError::Action(at, error))?;
        bytes += size;
        actions.push(prepared);
    }
    if bytes > TRANSACTION_SIZE_MAX_BYTES {
        return invalid("the items of a transaction must not exceed 4 MB together");
    }
    if has_repeated_item(&actions) {
        return invalid("Transaction request cannot include multiple operations on one item");
    }
    let bytes = bytes + actions.len() * ACTION_OVERHEAD_BYTES;
    Ok(PreparedTransaction {
        actions,
        token,
        bytes,
    })
}

/// Checks and encodes a single write.
pub(crate) fn action(
    catalogue: &Catalogue,
    action: impl Into<Action>,
) -> Result<PreparedTransaction, StoreError> {
    let (action, size) = prepare_action(catalogue, action.into())?;
    Ok(PreparedTransaction {
        actions: vec![action],
        token: None,
        bytes: size + ACTION_OVERHEAD_BYTES,
    })
}

fn prepare_action(
    catalogue: &Catalogue,
    action: Action,
) -> Result<(PreparedAction, usize), StoreError> {
    let table = Arc::clone(catalogue.get(action.table())?);
    let (key, write, size, condition, returning, old_on_failure) = match action {
        Action::Put(put) => {
            let key = table.key_of(&put.item)?;
            put.item.check().map_err(StoreError::invalid)?;
            table
                .check_index_keys(&put.item, KeyFrom::Put)
                .map_err(StoreError::Invalid)?;
            check_returning(put.returning)?;
            let size = put.item.size();
            let value = record::encode_sized(&put.item, &table.key, size);
            let write = PreparedWrite::Put(value);
            (
                key,
                write,
                size,
                put.condition,
                put.returning,
                put.old_on_failure,
            )
        }
        Action::Update(action) => {
            let key = table.exact_key(&action.key)?;
            let update = &action.update;
            update.check().map_err(StoreError::invalid)?;
            if let Some(path) = update.paths().find(|path| table.key.has(path.name())) {
                return Err(StoreError::invalid(format!(
                    "One or more parameter values were invalid: Cannot update attribute {}. This attribute is part of the key",
                    path.name()
                )));
            }
            let size = action.key.size() + update_size(update);
            let write = PreparedWrite::Update(action.key, action.update);
            (
                key,
                write,
                size,
                action.condition,
                action.returning,
                action.old_on_failure,
            )
        }
        Action::Delete(delete) => {
            let key = table.exact_key(&delete.key)?;
            check_returning(delete.returning)?;
            let (write, size) = (PreparedWrite::Delete, delete.key.size());
            (
                key,
                write,
                size,
                delete.condition,
                delete.returning,
                delete.old_on_failure,
            )
        }
        Action::Check(check) => {
            let key = table.exact_key(&check.key)?;
            let (write, size) = (PreparedWrite::Check, check.key.size());
            (
                key,
                write,
                size,
                Some(check.condition),
                ReturnValues::None,
                check.old_on_failure,
            )
        }
    };
    let action = PreparedAction {
        table,
        key,
        write,
        condition,
        returning,
        old_on_failure,
        measure: false,
    };
    Ok((action, size))
}

/// Approximate size of an update's values.
fn update_size(update: &expression::Update) -> usize {
    let sets = update.set.iter().map(|(_, operand)| operand_size(operand));
    let others = update.add.iter().chain(&update.delete);
    sets.sum::<usize>() + others.map(|(_, value)| value.size()).sum::<usize>()
}

fn operand_size(operand: &UpdateOperand) -> usize {
    match operand {
        UpdateOperand::Path(_) => 0,
        UpdateOperand::Value(value) => value.size(),
        UpdateOperand::IfNotExists(_, inner) => operand_size(inner),
        UpdateOperand::ListAppend(left, right)
        | UpdateOperand::Plus(left, right)
        | UpdateOperand::Minus(left, right) => operand_size(left) + operand_size(right),
    }
}

/// Whether two actions are on one item.
pub(crate) fn has_repeated_item<'a>(actions: impl IntoIterator<Item = &'a PreparedAction>) -> bool {
    let mut items: Vec<_> = actions
        .into_iter()
        .map(|action| (action.table.id(), &action.key))
        .collect();
    items.sort_unstable();
    items.windows(2).any(|pair| pair[0] == pair[1])
}

/// Puts and deletes can only return the old item.
fn check_returning(returning: ReturnValues) -> Result<(), StoreError> {
    match returning {
        ReturnValues::None | ReturnValues::AllOld => Ok(()),
        _ => Err(StoreError::invalid("Return values set to invalid value")),
    }
}
