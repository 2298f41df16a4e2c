//! Testing the targets of a definition: notifications that are marked as tests, through the same outbox.

use super::notification::{Event, Notification};
use super::result::NotificationResult;
use crate::alerts::judging::transition::OmittedParts;
use crate::alerts::types::{AlertId, DefinitionId};
use crate::alerts::{Alerts, AlertsError};
use crate::outbox::commit;

impl Alerts {
    /// Sends a test to every target of a definition, whether it is enabled or not. Quiet hours do not delay it.
    /// Returns the id of the test.
    ///
    /// # Errors
    /// When the definition does not exist or has no targets, the outbox is full, or the store fails.
    pub async fn test_targets(&self, id: &DefinitionId) -> Result<AlertId, AlertsError> {
        let definition = self.definition(id).await?;
        let now = self.now();
        let test_id = AlertId::new(now);
        let targets = definition.terms.targets.iter().enumerate();
        let tests = targets.map(|(number, target)| {
            Notification::queued(&test_id, id, Event::Test, number, target, now, now)
        });
        let tests: Vec<_> = tests.collect();
        if tests.is_empty() {
            return Err(AlertsError::NoTargets);
        }
        let actions = self.outgoing(tests, OmittedParts::default())?;
        if !commit(&*self.0.store, actions).await? {
            return Err(AlertsError::OutboxFull);
        }
        self.0.work.notify_one();
        Ok(test_id)
    }

    /// The results of a test.
    ///
    /// # Errors
    /// When there is no such test of the definition, or the store fails.
    pub async fn test_results(
        &self,
        id: &DefinitionId,
        test_id: &AlertId,
    ) -> Result<Vec<NotificationResult>, AlertsError> {
        let mut results = self.notification_results(test_id).await?;
        results.retain(|result| {
            let notification = &result.notification;
            notification.event == Event::Test && notification.definition_id == *id
        });
        if results.is_empty() {
            return Err(AlertsError::TestMissing);
        }
        Ok(results)
    }
}
