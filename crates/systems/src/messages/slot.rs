//! Connects rules and commands to the broker, which is created after them because it needs the rules.

use std::sync::{Arc, OnceLock, Weak};

use async_trait::async_trait;
use homeport_store::StoreError;

use super::{Message, Publish};

/// Publishes through the connected publisher.
#[derive(Clone, Default)]
pub struct PublishSlot {
    // Weak, because the broker and the rules refer to each other.
    taken: Arc<OnceLock<Weak<dyn Publish>>>,
}

impl PublishSlot {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Connects a publisher; only the first one counts. The caller keeps it alive.
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
