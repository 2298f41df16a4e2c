//! Deletes client tokens that are no longer needed.

use std::sync::Arc;

use homeport_store::StoreError;

use super::CHUNK;
use crate::commit::committer::Committer;
use crate::commit::tokens;
use crate::error::unavailable;
use crate::shared::{Shared, run_exclusive};
use crate::storage::vault::UserKey;

/// How far tokens have been deleted.
#[derive(Default)]
pub(super) struct DeletedTokens {
    /// No earlier token exists, because commit times never go backwards.
    deleted_until_ms: i64,
}

impl DeletedTokens {
    pub(super) fn sweep(&mut self, shared: &Shared, now_ms: i64) -> Result<u64, StoreError> {
        let end_ms = now_ms.saturating_sub(tokens::TOKEN_LIFETIME_MS).max(0);
        let mut total = 0;
        while self.deleted_until_ms < end_ms {
            let range = tokens::time_range(self.deleted_until_ms, end_ms);
            let due: Vec<UserKey> = shared
                .database
                .snapshot()
                .range(&shared.keyspaces.tokens, range)
                .take(CHUNK)
                .map(|guard| guard.key().map_err(unavailable))
                .collect::<Result<_, _>>()?;
            let is_last = due.len() < CHUNK;
            if !due.is_empty() {
                total += run_exclusive(shared, move |committer| forget(committer, due))?;
            }
            if is_last {
                self.deleted_until_ms = end_ms;
            }
        }
        Ok(total)
    }
}

fn forget(committer: &mut Committer, due: Vec<UserKey>) -> Result<u64, StoreError> {
    let shared = Arc::clone(&committer.shared);
    committer.write(|group| {
        let count = due.len() as u64;
        for time_key in due {
            if let Some((at_ms, token_key)) = tokens::token_of_time_key(&time_key) {
                // A token that was used again has a newer time and stays.
                let seen = group.load_token(&token_key).map_err(unavailable)?;
                if seen.and_then(|value| tokens::seen_at_ms(&value)) == Some(at_ms) {
                    group.remove(&shared.keyspaces.tokens, token_key);
                }
            }
            group.remove(&shared.keyspaces.tokens, time_key);
        }
        Ok(count)
    })
}
