//! The stored positions of reactions.

use std::sync::Arc;

use homeport_item::{Item, Number};
use homeport_store::{Get, Position, Put, Store, StoreError, WriteError};

use super::schema;

#[derive(Clone)]
pub(super) struct Positions(Arc<dyn Store>);

impl Positions {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self(store)
    }

    pub(super) async fn get(&self, reaction: &str) -> Result<Option<Position>, StoreError> {
        let key = Item::new().with(schema::REACTION, reaction);
        let item = self.0.get(Get::new(schema::REACTIONS, key)).await?;
        let position = item.and_then(|item| Some(item.get(schema::POSITION)?.as_str()?.to_owned()));
        Ok(position.map(Position::new))
    }

    pub(super) async fn put(
        &self,
        reaction: &str,
        position: &Position,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let item = Item::new()
            .with(schema::REACTION, reaction)
            .with(schema::POSITION, position.as_str())
            .with(schema::MOVED_AT, Number::from(now_ms));
        match self.0.put(Put::new(schema::REACTIONS, item)).await {
            Ok(_) => Ok(()),
            Err(WriteError::Store(error)) => Err(error),
            Err(WriteError::ConditionFailed { .. }) => Err(StoreError::Unavailable(
                "a put without a condition failed its condition".into(),
            )),
        }
    }
}
