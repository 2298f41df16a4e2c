//! Changes of documents: one transaction with the document, its new version and the count of changes.

use homeport_item::expression::{Condition, Path, Update};
use homeport_store::{
    Action, CancelReason, Delete, Put, StoreError, TransactError, Transaction,
    Update as UpdateRequest,
};

use super::{Document, Documents, VERSIONS_KEPT, schema, version_key};

/// Attempts at a change that conflicts with others.
const CONFLICTS_MAX: usize = 6;

/// A change; the number is the version that it replaces or deletes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change<'a> {
    Create(&'a Document),
    Replace(&'a Document, i64),
    /// The document is the version that records the deletion.
    Delete(&'a Document, i64),
}

/// Why a change failed.
#[derive(Debug)]
pub(crate) enum ChangeError {
    /// Another process has created, changed or deleted the document.
    Overtaken,
    Store(StoreError),
}

impl Documents {
    pub(crate) async fn write(&self, change: Change<'_>) -> Result<(), ChangeError> {
        let actions = self.actions(change);
        for _ in 0..CONFLICTS_MAX {
            match self.store.transact(Transaction::new(actions.clone())).await {
                Ok(()) => return Ok(()),
                Err(TransactError::Cancelled(reasons)) => {
                    let has_failed =
                        |reason| matches!(reason, &CancelReason::ConditionFailed { .. });
                    if reasons.iter().any(has_failed) {
                        return Err(ChangeError::Overtaken);
                    }
                    tokio::task::yield_now().await;
                }
                Err(TransactError::TokenMismatch) => break,
                Err(TransactError::Store(error)) => return Err(ChangeError::Store(error)),
            }
        }
        Err(ChangeError::Store(StoreError::Throttled))
    }

    fn actions(&self, change: Change<'_>) -> Vec<Action> {
        let is_version = |version: i64| Path::from(schema::VERSION).equals(version);
        let is_new = || Condition::not_exists(schema::PK);
        let put = |document: &Document| Put::new(self.table, document.to_item(self.current));
        let (document, current): (_, Action) = match change {
            Change::Create(document) => (document, put(document).when(is_new()).into()),
            Change::Replace(document, read) => {
                (document, put(document).when(is_version(read)).into())
            }
            Change::Delete(document, read) => {
                let key = schema::key(self.current, document.name.as_str());
                let delete = Delete::new(self.table, key).when(is_version(read));
                (document, delete.into())
            }
        };
        let version = Put::new(self.table, document.to_version_item()).when(is_new());
        let mut actions = vec![current, version.into(), self.count_change()];
        if document.version > VERSIONS_KEPT {
            let oldest = version_key(&document.name, document.version - VERSIONS_KEPT);
            actions.push(Delete::new(self.table, oldest).into());
        }
        actions
    }

    /// The write that signals a change to other processes; part of every change.
    pub(crate) fn count_change(&self) -> Action {
        let update = Update::new().add(schema::CHANGED, 1);
        UpdateRequest::new(self.table, schema::changes_key(), update).into()
    }
}
