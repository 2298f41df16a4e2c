//! Assigning an alert to a person.

use homeport_item::Value;
use homeport_item::expression::{Condition as Expression, Update};

use crate::alerts::alert::Alert;
use crate::alerts::types::{AlertId, PersonName};
use crate::alerts::{Alerts, AlertsError, schema};

impl Alerts {
    /// Assigns an alert, open or cleared, to somebody, or takes it away from everybody. The last assignment
    /// counts.
    ///
    /// # Errors
    /// When the alert does not exist, or the store fails.
    pub async fn assign(
        &self,
        id: &AlertId,
        by: PersonName,
        to: Option<PersonName>,
    ) -> Result<Alert, AlertsError> {
        let update = Update::new()
            .set(schema::ASSIGNED_AT, Value::from(self.now().0))
            .set(schema::ASSIGNED_BY, Value::from(&by));
        let update = match &to {
            Some(to) => update.set(schema::ASSIGNED_TO, Value::from(to)),
            None => update.remove(schema::ASSIGNED_TO),
        };
        let changed = self.change(id, update, Expression::exists(schema::ALL));
        changed.await?.ok_or(AlertsError::AlertMissing)
    }
}
