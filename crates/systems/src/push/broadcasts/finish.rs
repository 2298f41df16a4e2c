//! Open broadcasts, their changes, and their end.

use homeport_item::Value;
use homeport_item::expression::{Path, Update};
use homeport_store::{Action, Update as UpdateRequest};

use super::broadcast::{Broadcast, BroadcastState};
use super::stored;
use crate::outbox::{commit, stored_steps};
use crate::push::measured::store_error;
use crate::push::{OPEN_BROADCASTS_MAX, Push, PushError, schema};

impl Push {
    /// Open broadcasts, oldest first.
    pub(in crate::push) async fn open_broadcasts(&self) -> Result<Vec<Broadcast>, PushError> {
        let items = self
            .outbox
            .due_items(schema::OPEN_BROADCAST, self.now(), OPEN_BROADCASTS_MAX);
        let items = items.await.map_err(store_error)?;
        let read = |item| {
            let broadcast = stored::from_item(item);
            broadcast
                .inspect_err(|error| tracing::warn!(%error, "skipped a broadcast"))
                .ok()
        };
        Ok(items.iter().filter_map(read).collect())
    }

    /// Finishes a broadcast of which nothing is left to do.
    pub(in crate::push) async fn finish_broadcast(
        &self,
        mut broadcast: Broadcast,
    ) -> Result<(), PushError> {
        let now = self.now();
        broadcast.finished_at = Some(now);
        if broadcast.state != BroadcastState::Cancelled {
            broadcast.state = BroadcastState::Finished;
        }
        broadcast.note(now, "finished");
        let one_less = schema::open_broadcasts_counter().add(schema::NOTIFICATIONS, -1, None);
        if self
            .change_broadcast(broadcast, vec![one_less.into()])
            .await?
        {
            metrics::counter!("homeport_push_broadcasts_total", "outcome" => "finished")
                .increment(1);
        }
        Ok(())
    }

    /// Writes everything of a broadcast but its counts, which deliveries change at any time; false if someone else has
    /// changed it since it was read.
    pub(super) async fn change_broadcast(
        &self,
        broadcast: Broadcast,
        others: Vec<Action>,
    ) -> Result<bool, PushError> {
        let change = change(&broadcast, Update::new());
        let writes = std::iter::once(change).chain(others).collect();
        commit(&*self.store, writes).await.map_err(store_error)
    }
}

/// The write that changes a broadcast, if its version is the one that was read, and adds to its counts.
pub(super) fn change(broadcast: &Broadcast, counts: Update) -> Action {
    let mut update = counts
        .set(schema::STATE, broadcast.state.as_str())
        .set(schema::STEPS, stored_steps(&broadcast.steps))
        .set(schema::VERSION, broadcast.version + 1);
    let optional = [
        (
            schema::STARTED_AT,
            broadcast.started_at.map(|at| Value::from(at.0)),
        ),
        (
            schema::FINISHED_AT,
            broadcast.finished_at.map(|at| at.0.into()),
        ),
        (
            schema::WALK,
            broadcast.walk.as_ref().map(|walk| walk.to_value()),
        ),
    ];
    for (name, value) in optional {
        update = match value {
            Some(value) => update.set(name, value),
            None => update.remove(name),
        };
    }
    if broadcast.finished_at.is_some() {
        update = update.remove(schema::WORK).remove(schema::DUE_AT_MS);
    }
    let key = schema::broadcast_key(&broadcast.id);
    let request = UpdateRequest::new(schema::NOTIFICATIONS, key, update);
    request
        .when(Path::from(schema::VERSION).equals(broadcast.version))
        .into()
}
