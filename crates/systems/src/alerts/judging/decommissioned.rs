//! Decommissioned devices: their watches end and their alerts are cleared, so that none counts as silent.

use crate::alerts::types::DeviceName;
use crate::alerts::{Alerts, AlertsError, schema};
use crate::fetch::fetch;
use crate::fleet::SystemName;
use crate::time::EpochMillis;

use super::watch::Watch;

const REASON: &str = "the device was decommissioned";

impl Alerts {
    /// Ends the watches of a device that is being removed; it can be repeated. Returns whether all data that was stored
    /// until `stored_until` is judged, so that no watch can begin again.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn forget_device(
        &self,
        system: &str,
        device: &str,
        stored_until: EpochMillis,
    ) -> Result<bool, AlertsError> {
        let system = SystemName::from(system.to_owned());
        let device = DeviceName::stored(device.to_owned());
        // Asked before the watches are read, which then have everything that was judged until here.
        let is_judged = self
            .judged_until(&system)
            .is_none_or(|until| until >= stored_until);
        let snapshot = self.refresh().await?;
        let definitions = snapshot.definitions.iter();
        let definitions = definitions.filter(|definition| definition.terms.source == system);
        let keys = definitions.map(|definition| schema::watch_key(&definition.id, &device));
        for item in &fetch(&*self.0.store, schema::WATCHES, keys, None).await? {
            match Watch::from_item(item) {
                Ok(watch) => self.retire(&watch, REASON).await?,
                // It must not block the removal.
                Err(error) => tracing::warn!(%error, "skipped a malformed watch"),
            }
        }
        Ok(is_judged)
    }
}
