//! Daily statistics that follow the events: after each stored event its day is counted again.

use std::collections::BTreeSet;

use async_trait::async_trait;
use homeport_store::{Change, ChangeKind};

use super::recount::days_after_deletion;
use super::{Chargers, EventRange, MountainDay, Order, ScId, affected_days, schema};
use crate::reactions::{Reaction, ReactionError};

/// Devices that are read at once when everything is counted.
const DEVICES_AT_ONCE: usize = 100;

/// Recounts the days of new events. Counting a day twice changes nothing, so events may be delivered
/// repeatedly.
#[derive(Debug, Clone)]
pub struct DailyReaction(Chargers);

impl DailyReaction {
    #[must_use]
    pub fn new(chargers: Chargers) -> Self {
        Self(chargers)
    }

    /// The first and the last day with events of a device.
    async fn span(
        &self,
        device_id: &ScId,
    ) -> Result<Option<(MountainDay, MountainDay)>, ReactionError> {
        let mut ends = Vec::new();
        for order in [Order::OldestFirst, Order::NewestFirst] {
            let range = EventRange {
                order,
                ..EventRange::default()
            };
            let page = self.0.events(device_id, None, range, 1, None).await;
            let page = page.map_err(ReactionError::new)?;
            ends.extend(
                page.items
                    .first()
                    .map(|event| MountainDay::of(event.timestamp_utc)),
            );
        }
        Ok(ends.first().copied().zip(ends.last().copied()))
    }
}

#[async_trait]
impl Reaction for DailyReaction {
    fn name(&self) -> &'static str {
        "chargers-daily"
    }

    fn table(&self) -> &str {
        schema::EVENTS
    }

    async fn apply(&self, changes: &[Change]) -> Result<(), ReactionError> {
        let events = changes.iter().filter_map(|change| change.new.as_ref());
        let days = events.flat_map(affected_days).collect();
        self.0.recount(&days).await.map_err(ReactionError::new)?;
        let deletions = changes
            .iter()
            .filter(|change| change.kind == ChangeKind::Remove);
        let days = deletions
            .flat_map(|change| days_after_deletion(&change.key))
            .collect();
        let recounted = self.0.recount_after_deletion(&days).await;
        recounted.map_err(ReactionError::new)?;
        Ok(())
    }

    async fn start_over(&self) -> Result<(), ReactionError> {
        let mut start = None;
        loop {
            let (devices, next) = self
                .0
                .registered(start, DEVICES_AT_ONCE)
                .await
                .map_err(ReactionError::new)?;
            for device_id in &devices {
                let Some((first, last)) = self.span(device_id).await? else {
                    continue;
                };
                // Day by day, so that a long history needs no memory.
                let mut day = first;
                while day <= last {
                    let days = BTreeSet::from([(device_id.clone(), day)]);
                    self.0.recount(&days).await.map_err(ReactionError::new)?;
                    day = day.next();
                }
            }
            start = match next {
                Some(next) => Some(next),
                None => return Ok(()),
            };
        }
    }
}
