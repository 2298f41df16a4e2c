//! Publishing for those who are there before the broker: rules publish, and the broker takes
//! messages in through the rules, so that one of the two has to be made first.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use homeport_store::StoreError;

use super::{Message, Publish};

/// Publishes through whatever it was given, once it was.
#[derive(Clone, Default)]
pub struct LatePublish(Arc<OnceLock<Arc<dyn Publish>>>);

impl LatePublish {
    /// Gives it where to publish. Only the first call counts.
    pub fn set(&self, publish: Arc<dyn Publish>) {
        let _ = self.0.set(publish);
    }
}

#[async_trait]
impl Publish for LatePublish {
    async fn publish(&self, message: Message) -> Result<(), StoreError> {
        match self.0.get() {
            Some(publish) => publish.publish(message).await,
            None => Err(StoreError::Unavailable(
                "messages cannot be published yet".to_owned(),
            )),
        }
    }
}

impl std::fmt::Debug for LatePublish {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("LatePublish")
            .finish_non_exhaustive()
    }
}
