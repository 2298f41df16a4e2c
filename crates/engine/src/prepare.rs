//! What callers do before they hand a transaction to the committer: check it and encode it. All
//! of this runs in the callers' own threads, side by side.

use std::sync::Arc;

use homeport_item::Item;
use homeport_item::expression::{self, Condition, UpdateOperand};
use homeport_store::{
    Action, Returning, StoreError, TRANSACTION_ACTIONS_MAX, TRANSACTION_SIZE_MAX_BYTES, Transaction,
};

use crate::catalogue::Catalogue;
use crate::record;
use crate::table::{KeyFrom, Table};
use crate::token_digest;
use crate::vault::{UserKey, UserValue};

/// A client token may not be longer than this.
const TOKEN_LEN_MAX: usize = 36;
/// Size limit of a transaction that deletes and also writes while the disk is nearly full.
const DELETE_BYTES_MAX: usize = 16 * 1024;
/// What a queued action weighs besides its bytes.
const ACTION_OVERHEAD_BYTES: usize = 256;

/// A transaction that is ready to be evaluated.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) actions: Vec<PreparedAction>,
    pub(crate) token: Option<Token>,
    /// Roughly what it takes in memory and in the journal.
    pub(crate) bytes: usize,
}

#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) text: String,
    /// Of the whole transaction: a repeat has the same.
    pub(crate) digest: u128,
}

#[derive(Debug)]
pub(crate) struct PreparedAction {
    /// The table as it was when the action was prepared; its keys never change.
    pub(crate) table: Arc<Table>,
    pub(crate) key: UserKey,
    pub(crate) write: Write,
    pub(crate) condition: Option<Condition>,
    pub(crate) returning: Returning,
    pub(crate) old_on_failure: bool,
    /// Whether to work out what the write costs, which takes the item as it was.
    pub(crate) measure: bool,
}

#[derive(Debug)]
pub(crate) enum Write {
    Put(UserValue),
    /// The key attributes, for an item that does not exist yet, and the changes.
    Update(Item, expression::Update),
    Delete,
    Check,
}

impl Prepared {
    /// Whether it may be written while the disk is nearly full: it deletes, and whatever else it writes is
    /// small, as a note of what is to be deleted later.
    pub(crate) fn frees_space(&self) -> bool {
        let is_delete = |action: &PreparedAction| matches!(action.write, Write::Delete);
        let is_check = |action: &PreparedAction| matches!(action.write, Write::Check);
        self.actions.iter().any(is_delete)
            && (self.bytes <= DELETE_BYTES_MAX
                || self
                    .actions
                    .iter()
                    .all(|action| is_delete(action) || is_check(action)))
    }

    /// Has every action say what it costs.
    pub(crate) fn measured(mut self, measure: bool) -> Self {
        for action in &mut self.actions {
            action.measure = measure;
        }
        self
    }
}

/// Why a transaction cannot be prepared.
#[derive(Debug)]
pub(crate) enum Unprepared {
    /// The action at this position is at fault.
    Action(usize, StoreError),
    Whole(StoreError),
}

impl From<Unprepared> for StoreError {
    fn from(unprepared: Unprepared) -> Self {
        match unprepared {
            Unprepared::Action(_, error) | Unprepared::Whole(error) => error,
        }
    }
}

/// Checks and encodes a transaction.
pub(crate) fn transaction(
    catalogue: &Catalogue,
    transaction: Transaction,
) -> Result<Prepared, Unprepared> {
    let invalid = |text: &str| Err(Unprepared::Whole(StoreError::Invalid(text.to_owned())));
    if transaction.actions.is_empty() {
        return invalid("a transaction must have at least one action");
    }
    if transaction.actions.len() > TRANSACTION_ACTIONS_MAX {
        return invalid("a transaction may have 100 actions at most");
    }
    let token = match &transaction.token {
        Some(text) if text.is_empty() || text.len() > TOKEN_LEN_MAX => {
            return invalid("a client request token must be 1 to 36 characters long");
        }
        Some(text) => Some(Token {
            text: text.clone(),
            digest: token_digest::digest(&transaction.actions),
        }),
        None => None,
    };
    let mut bytes = 0;
    let mut actions = Vec::with_capacity(transaction.actions.len());
    for (at, action) in transaction.actions.into_iter().enumerate() {
        let (prepared, size) =
            prepare_action(catalogue, action).map_err(|error| Unprepared::Action(at, error))?;
        bytes += size;
        actions.push(prepared);
    }
    if bytes > TRANSACTION_SIZE_MAX_BYTES {
        return invalid("the items of a transaction may count for 4 MB at most");
    }
    if has_repeated_item(&actions) {
        return invalid("Transaction request cannot include multiple operations on one item");
    }
    let bytes = bytes + actions.len() * ACTION_OVERHEAD_BYTES;
    Ok(Prepared {
        actions,
        token,
        bytes,
    })
}

/// Checks and encodes a single write.
pub(crate) fn action(
    catalogue: &Catalogue,
    action: impl Into<Action>,
) -> Result<Prepared, StoreError> {
    let (action, size) = prepare_action(catalogue, action.into())?;
    Ok(Prepared {
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
    match action {
        Action::Put(put) => {
            let key = table.key_of(&put.item)?;
            put.item.check().map_err(invalid)?;
            table
                .check_index_keys(&put.item, KeyFrom::Put)
                .map_err(StoreError::Invalid)?;
            if !matches!(put.returning, Returning::Nothing | Returning::AllOld) {
                return Err(StoreError::Invalid(
                    "Return values set to invalid value".to_owned(),
                ));
            }
            let size = put.item.size();
            let value = record::encode_sized(&put.item, &table.key, size);
            let action = PreparedAction {
                table,
                key,
                write: Write::Put(value),
                condition: put.condition,
                returning: put.returning,
                old_on_failure: put.old_on_failure,
                measure: false,
            };
            Ok((action, size))
        }
        Action::Update(update) => {
            let key = table.exact_key(&update.key)?;
            update.update.check().map_err(invalid)?;
            if let Some(path) = update
                .update
                .paths()
                .find(|path| table.key.has(path.name()))
            {
                return Err(StoreError::Invalid(format!(
                    "One or more parameter values were invalid: Cannot update attribute {}. This attribute is part of the key",
                    path.name()
                )));
            }
            let size = update.key.size() + update_size(&update.update);
            let action = PreparedAction {
                table,
                key,
                write: Write::Update(update.key, update.update),
                condition: update.condition,
                returning: update.returning,
                old_on_failure: update.old_on_failure,
                measure: false,
            };
            Ok((action, size))
        }
        Action::Delete(delete) => {
            let key = table.exact_key(&delete.key)?;
            if !matches!(delete.returning, Returning::Nothing | Returning::AllOld) {
                return Err(StoreError::Invalid(
                    "Return values set to invalid value".to_owned(),
                ));
            }
            let action = PreparedAction {
                table,
                key,
                write: Write::Delete,
                condition: delete.condition,
                returning: delete.returning,
                old_on_failure: delete.old_on_failure,
                measure: false,
            };
            Ok((action, delete.key.size()))
        }
        Action::Check(check) => {
            let key = table.exact_key(&check.key)?;
            let action = PreparedAction {
                table,
                key,
                write: Write::Check,
                condition: Some(check.condition),
                returning: Returning::Nothing,
                old_on_failure: check.old_on_failure,
                measure: false,
            };
            Ok((action, check.key.size()))
        }
    }
}

/// Roughly what the values of an update take.
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

/// Whether two of the single writes are on one item.
pub(crate) fn write_twice(prepared: &[Prepared]) -> bool {
    let mut items: Vec<_> = prepared
        .iter()
        .flat_map(|prepared| &prepared.actions)
        .map(|action| (action.table.id(), &action.key))
        .collect();
    items.sort_unstable();
    items.windows(2).any(|pair| pair[0] == pair[1])
}

fn has_repeated_item(actions: &[PreparedAction]) -> bool {
    if actions.len() < 2 {
        return false;
    }
    let mut items: Vec<_> = actions
        .iter()
        .map(|action| (action.table.id(), &action.key))
        .collect();
    items.sort_unstable();
    items.windows(2).any(|pair| pair[0] == pair[1])
}

fn invalid(error: impl std::fmt::Display) -> StoreError {
    StoreError::Invalid(error.to_string())
}
