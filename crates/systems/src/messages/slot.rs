//! A place for the broker: rules and commands publish through it, and the broker, which needs the
//! rules itself, takes it when it is made.

use std::sync::{Arc, OnceLock, Weak};

use async_trait::async_trait;
use homeport_store::StoreError;

use super::{Message, Publish};

/// Publishes through whoever has taken the place.
#[derive(Clone, Default)]
pub struct PublishSlot {
    // Weak, so that the broker and the rules, which hold each other, can both be let go.
    taken: Arc<OnceLock<Weak<dyn Publish>>>,
}

impl PublishSlot {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the place; the first one keeps it. Whoever takes it must be kept alive elsewhere.
    pub fn fill(&self, publish: &Arc<dyn Publish>) -> bool {
        self.taken.set(Arc::downgrade(publish)).is_ok()
    }
}

#[async_trait]
impl Publish for PublishSlot {
    async fn publish(&self, message: Message) -> Result<(), StoreError> {
        let publish = self.taken.get().and_then(Weak::upgrade);
        match publish {
            Some(publish) => publish.publish(message).await,
            None => Err(StoreError::Unavailable(
                "nothing publishes messages at this moment".to_owned(),
            )),
        }
    }
}

impl std::fmt::Debug for PublishSlot {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("PublishSlot")
            .field("is_taken", &self.taken.get().is_some())
            .finish()
    }
}
