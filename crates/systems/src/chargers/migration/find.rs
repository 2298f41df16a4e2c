//! Verifies that old items are in the new tables.

use super::progress::{Counts, Source};
use super::refusals;
use super::{DESCRIPTIONS_MAX, Migration, Moved, OldEvent, OldItem, Refusal};
use crate::chargers::event::{MOVES_MAX, UplinkId, event_key};
use crate::chargers::mountain::MountainTime;
use crate::chargers::schema;
use crate::chargers::types::ScId;
use crate::time::EpochMillis;
use homeport_store::StoreError;

impl Migration {
    /// Counts the items that are in the new tables, and those that are not. Refused items are neither.
    pub(super) async fn verify(
        &mut self,
        source: Source,
        items: Vec<OldItem>,
        counts: &mut Counts,
    ) -> Result<(), StoreError> {
        for OldItem { key, moved } in items {
            let id = refusals::id(source, &key);
            let (false, Ok(moved)) = (self.refused.contains_key(&id), moved) else {
                continue;
            };
            match self.find(&moved).await {
                Ok(()) => counts.verified += 1,
                Err(Refusal::Item(reason)) => {
                    counts.missing += 1;
                    if self.descriptions.len() < DESCRIPTIONS_MAX {
                        self.descriptions.push(format!("{id}: {reason}"));
                    }
                }
                Err(Refusal::Store(error)) => return Err(error),
            }
        }
        Ok(())
    }

    /// Verifies the new items of an old item. Events must be unchanged. Other items must have every attribute,
    /// possibly with a newer value.
    async fn find(&self, moved: &Moved) -> Result<(), Refusal> {
        let missing = |reason: &str| Err(Refusal::Item(reason.to_owned()));
        let (table, wanted) = match moved {
            Moved::Event(event) => return self.find_event(event).await,
            Moved::Device(item) => (schema::DEVICES, item.clone()),
            Moved::Daily(item) => {
                let mut item = item.clone();
                // Statistics that were counted since replace the migrated ones.
                item.remove(schema::MIGRATED_FROM);
                (schema::DAILY_STATS, item)
            }
            Moved::State {
                wireless,
                attributes,
            } => {
                let device_id = ScId::of(*wireless);
                let item = attributes.clone().with(schema::DEVICE_ID, &device_id);
                (schema::DEVICE_STATE, item)
            }
        };
        let keys = [schema::DEVICE_ID, schema::DATE];
        let keys = keys
            .into_iter()
            .take(if table == schema::DAILY_STATS { 2 } else { 1 });
        let key = keys.filter_map(|name| Some((name, wanted.get(name)?.clone())));
        let Some(there) = self.get(table, key.collect()).await? else {
            return missing("it is not in the new table");
        };
        match wanted.iter().find(|(name, _)| there.get(name).is_none()) {
            Some((name, _)) => Err(Refusal::Item(format!("{name} is not in the new table"))),
            None => Ok(()),
        }
    }

    async fn find_event(&self, event: &OldEvent) -> Result<(), Refusal> {
        let device_id = ScId::of(event.wireless);
        for moved_ms in 0..MOVES_MAX {
            let timestamp_mt = MountainTime::of(EpochMillis(event.at.0 + moved_ms));
            let there = self
                .get(schema::EVENTS, event_key(&device_id, timestamp_mt))
                .await?;
            let Some(there) = there else { break };
            if UplinkId::stored_in(&there).as_ref() == Some(&event.uplink_id) {
                let differs = event
                    .item
                    .iter()
                    .find(|(name, value)| there.get(name) != Some(value));
                return match differs {
                    Some((name, _)) => Err(Refusal::Item(format!("{name} differs"))),
                    None => Ok(()),
                };
            }
        }
        Err(Refusal::Item("it is not in the new table".to_owned()))
    }
}
