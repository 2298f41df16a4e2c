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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::messages::{Delivery, Properties, Publisher};
    use crate::time::EpochMillis;

    #[derive(Default)]
    struct Counting(AtomicUsize);

    #[async_trait]
    impl Publish for Counting {
        async fn publish(&self, _: Message) -> Result<(), StoreError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    #[tokio::test]
    async fn publishing_fails_until_there_is_where_to() {
        let message = Message {
            topic: "van/v1/x".to_owned(),
            payload: "1".into(),
            delivery: Delivery::AtMostOnce,
            retain: false,
            publisher: Publisher::default(),
            received_at: EpochMillis(0),
            properties: Properties::default(),
            hops: 0,
        };
        let late = LatePublish::default();
        let early = late.clone().publish(message.clone()).await;
        assert!(early.is_err_and(|error| error.is_transient()));
        let counting = Arc::new(Counting::default());
        late.set(Arc::clone(&counting) as _);
        assert_eq!(late.publish(message).await, Ok(()));
        assert_eq!(counting.0.load(Ordering::Relaxed), 1);
    }
}
