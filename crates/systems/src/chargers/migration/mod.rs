//! Migrates data from the predecessor's tables: events with their state markers, the registry, and daily
//! aggregates. The old tables are only read.
//!
//! Every step reads one page of one old table, writes the new items, and then stores its progress. Steps are
//! idempotent, so an interrupted run can continue. Newer data in the new tables is never overwritten.

mod old;
mod progress;

use std::collections::BTreeMap;
use std::sync::Arc;

use homeport_item::expression::{Condition, Path, Update, UpdateOperand};
use homeport_item::{Item, Value};
use homeport_store::{Get, Scan, Store, StoreError, Update as UpdateRequest, WriteError};

use super::event::{MOVES_MAX, UplinkId, event_key};
use super::mountain::MountainTime;
use super::state::state_key;
use super::types::{ScId, WirelessDeviceId};
use super::{ChargersError, ingest, schema};
use crate::time::{EpochMillis, UtcSecond};
use old::{Moved, OldEvent};

pub use old::{OLD_DAILY, OLD_DEVICES, OLD_EVENTS, ORPHANS, old_tables};
pub use progress::{Counts, PROGRESS, Progress, Source, Stage, progress_table};

/// The default number of old items per step.
pub const STEP_ITEMS: usize = 100;
/// Rejected items that the report describes. All of them are counted.
pub const DESCRIPTIONS_MAX: usize = 100;

/// A migration on a store that has both the old tables and the new ones.
pub struct Migration {
    store: Arc<dyn Store>,
    now: UtcSecond,
    dry_run: bool,
    step_items: usize,
    progress: Progress,
    descriptions: Vec<String>,
    /// The owner of each SC-ID in a dry run, which writes none.
    owners: BTreeMap<ScId, WirelessDeviceId>,
}

/// Why an old item is not in the new tables.
enum Refusal {
    Item(String),
    Store(StoreError),
}

/// The newest event of a device in a step. Only this one updates the state of the device.
struct Seen {
    event: OldEvent,
    timestamp_mt: MountainTime,
}

impl Migration {
    /// Creates the new tables and continues where the previous run stopped. A dry run creates and writes
    /// nothing, and counts from the beginning.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn start(
        store: Arc<dyn Store>,
        now: EpochMillis,
        dry_run: bool,
    ) -> Result<Self, ChargersError> {
        let progress = if dry_run {
            Progress::new()
        } else {
            let mut tables = schema::tables();
            tables.push(progress_table());
            store.ensure_tables(&tables).await?;
            Progress::load(&*store).await?
        };
        Ok(Self {
            store,
            now: UtcSecond::new(now.seconds()),
            dry_run,
            step_items: STEP_ITEMS,
            progress,
            descriptions: Vec::new(),
            owners: BTreeMap::new(),
        })
    }

    /// Sets the number of items per step.
    #[must_use]
    pub fn with_step_items(mut self, step_items: usize) -> Self {
        self.step_items = step_items.max(1);
        self
    }

    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The items that this run rejected or did not find in the new tables.
    #[must_use]
    pub fn descriptions(&self) -> &[String] {
        &self.descriptions
    }

    /// Whether everything is done, nothing was rejected, and every old item was verified.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let counts = self.progress.counts;
        let read = counts.devices + counts.events + counts.states + counts.daily;
        self.progress.stage == Stage::Done
            && counts.refused == 0
            && counts.missing == 0
            && counts.verified == read
    }

    /// Starts from the beginning: all items are read again, and existing new items stay as they are.
    pub fn restart(&mut self) {
        self.progress = Progress::new();
    }

    /// Runs all remaining steps.
    ///
    /// # Errors
    /// When the store fails. Another run continues from there.
    pub async fn run(&mut self) -> Result<(), ChargersError> {
        while self.step().await? {}
        Ok(())
    }

    /// Runs one step; returns true if there is another one.
    ///
    /// # Errors
    /// When the store fails. The step can be repeated.
    pub async fn step(&mut self) -> Result<bool, ChargersError> {
        let stage = self.progress.stage;
        let Some(source) = stage.source() else {
            return Ok(false);
        };
        let verifies = matches!(stage, Stage::Verify(_));
        if verifies && self.dry_run {
            self.progress.stage = Stage::Done;
            return Ok(false);
        }
        let mut counts = self.progress.counts;
        let mut descriptions = Vec::new();
        let mut newest = BTreeMap::new();
        let (items, next) = self.read(source).await?;
        for old in &items {
            let done = match old::moved(source.table(), old) {
                Err(reason) if verifies => {
                    // It was rejected and counted when it was to be migrated.
                    tracing::debug!(reason, "skipped the verification of a rejected item");
                    continue;
                }
                Err(reason) => Err(Refusal::Item(reason)),
                Ok(moved) if verifies => self.find(&moved).await,
                Ok(moved) => self.bring(moved, &mut counts, &mut newest).await,
            };
            match done {
                Ok(()) => counts.verified += u64::from(verifies),
                Err(Refusal::Item(reason)) => {
                    let count = if verifies {
                        &mut counts.missing
                    } else {
                        &mut counts.refused
                    };
                    *count += 1;
                    descriptions.push(format!("{}: {}: {reason}", source.table(), name(old)));
                }
                Err(Refusal::Store(error)) => return Err(error.into()),
            }
        }
        for (device_id, seen) in &newest {
            self.see(device_id, seen).await?;
        }
        self.progress = Progress {
            stage: if next.is_some() { stage } else { stage.next() },
            start: next,
            counts,
        };
        let room = DESCRIPTIONS_MAX.saturating_sub(self.descriptions.len());
        self.descriptions
            .extend(descriptions.into_iter().take(room));
        if !self.dry_run {
            // IMPORTANT: only after everything of the step is stored.
            self.progress.save(&*self.store).await?;
        }
        Ok(self.progress.stage != Stage::Done)
    }

    /// The next page of an old table. A missing table is empty.
    async fn read(&self, source: Source) -> Result<(Vec<Item>, Option<Item>), StoreError> {
        let start = self.progress.start.clone();
        let mut scan = Scan::new(source.table())
            .limit(self.step_items)
            .starting_after(start);
        scan.consistent = true;
        match self.store.scan(scan).await {
            Ok(page) => Ok((page.items, page.next)),
            Err(StoreError::TableNotFound(_)) => Ok((Vec::new(), None)),
            Err(error) => Err(error),
        }
    }

    /// Writes the new items of an old item.
    async fn bring(
        &mut self,
        moved: Moved,
        counts: &mut Counts,
        newest: &mut BTreeMap<ScId, Seen>,
    ) -> Result<(), Refusal> {
        match moved {
            Moved::Device(item) => {
                let wireless = item.get(schema::WIRELESS_DEVICE_ID).cloned();
                let mut free = Condition::not_exists(schema::WIRELESS_DEVICE_ID);
                if let Some(wireless) = wireless {
                    free = free.or(Path::new(schema::WIRELESS_DEVICE_ID).equals(wireless));
                }
                self.complete(schema::DEVICES, &[schema::DEVICE_ID], &item, Some(free))
                    .await?;
                counts.devices += 1;
            }
            Moved::Daily(item) => {
                let keys = [schema::DEVICE_ID, schema::DATE];
                self.complete(schema::DAILY_STATS, &keys, &item, None)
                    .await?;
                counts.daily += 1;
            }
            Moved::State {
                wireless,
                attributes,
            } => {
                let device_id = self.provision(wireless).await?;
                let item = attributes
                    .with(schema::DEVICE_ID, &device_id)
                    .with(schema::WIRELESS_DEVICE_ID, &wireless);
                self.complete(schema::DEVICE_STATE, &[schema::DEVICE_ID], &item, None)
                    .await?;
                counts.states += 1;
            }
            Moved::Event(event) => {
                let device_id = self.provision(event.wireless).await?;
                let timestamp_mt = self.append(&device_id, &event).await?;
                counts.events += 1;
                let is_newest = |seen: &Seen| seen.event.at < event.at;
                if newest.get(&device_id).is_none_or(is_newest) {
                    let seen = Seen {
                        event,
                        timestamp_mt,
                    };
                    newest.insert(device_id, seen);
                }
            }
        }
        Ok(())
    }

    /// Registers a device, unless its SC-ID belongs to another device.
    async fn provision(&mut self, wireless: WirelessDeviceId) -> Result<ScId, Refusal> {
        let device_id = ScId::of(wireless);
        let known = self.get(schema::DEVICES, state_key(&device_id)).await?;
        let owner = known
            .as_ref()
            .and_then(|item| item.get(schema::WIRELESS_DEVICE_ID)?.as_str());
        match owner {
            Some(owner) if owner == wireless.to_string() => return Ok(device_id),
            Some(owner) => return Err(collision(&device_id, wireless, owner)),
            None if self.dry_run => {
                let owner = *self.owners.entry(device_id.clone()).or_insert(wireless);
                if owner != wireless {
                    return Err(collision(&device_id, wireless, &owner.to_string()));
                }
                return Ok(device_id);
            }
            None => {}
        }
        match self
            .store
            .update(ingest::provision(&device_id, wireless, self.now))
            .await
        {
            Ok(_) => Ok(device_id),
            Err(WriteError::ConditionFailed { .. }) => {
                Err(collision(&device_id, wireless, "another"))
            }
            Err(WriteError::Store(error)) => Err(Refusal::Store(error)),
        }
    }

    /// Appends an event at the first free key, unless it is stored already.
    async fn append(&self, device_id: &ScId, event: &OldEvent) -> Result<MountainTime, Refusal> {
        for moved_ms in 0..MOVES_MAX {
            let timestamp_mt = MountainTime::of(EpochMillis(event.at.0 + moved_ms));
            let there = self
                .get(schema::EVENTS, event_key(device_id, timestamp_mt))
                .await?;
            if let Some(there) = there {
                if UplinkId::stored_in(&there).as_ref() == Some(&event.uplink_id) {
                    return Ok(timestamp_mt);
                }
                continue;
            }
            if self.dry_run {
                return Ok(timestamp_mt);
            }
            let mut item = event.item.clone();
            item.insert(schema::DEVICE_ID, device_id);
            item.insert(schema::TIMESTAMP_MT, timestamp_mt);
            match self.store.put(ingest::append(item)).await {
                Ok(_) => return Ok(timestamp_mt),
                // Another writer took the key in between.
                Err(WriteError::ConditionFailed { .. }) => {}
                Err(WriteError::Store(StoreError::Invalid(reason))) => {
                    return Err(Refusal::Item(reason.to_string()));
                }
                Err(WriteError::Store(error)) => return Err(Refusal::Store(error)),
            }
        }
        Err(Refusal::Item("no key is free".to_owned()))
    }

    /// Updates the time of the newest event.
    async fn see(&self, device_id: &ScId, seen: &Seen) -> Result<(), StoreError> {
        if self.dry_run {
            return Ok(());
        }
        let Seen {
            event,
            timestamp_mt,
        } = seen;
        let event_type = event.item.get(schema::EVENT_TYPE).cloned();
        let update = Update::new()
            .set(schema::WIRELESS_DEVICE_ID, &event.wireless)
            .set(schema::LAST_SEEN_UTC_MS, event.at.0)
            .set(schema::LAST_SEEN_MT, *timestamp_mt)
            .set(schema::LAST_EVENT_TYPE, event_type.unwrap_or(Value::Null))
            // An uplink that read the state before this write must read it again.
            .add(schema::REVISION, 1);
        let is_newer = Condition::not_exists(schema::LAST_SEEN_UTC_MS)
            .or(Path::new(schema::LAST_SEEN_UTC_MS).less_than(event.at.0));
        let request = UpdateRequest::new(schema::DEVICE_STATE, state_key(device_id), update);
        match self.store.update(request.when(is_newer)).await {
            Ok(_) | Err(WriteError::ConditionFailed { .. }) => Ok(()),
            Err(WriteError::Store(error)) => Err(error),
        }
    }

    /// Adds missing attributes to an item; existing ones keep their values.
    async fn complete(
        &self,
        table: &'static str,
        keys: &[&str],
        item: &Item,
        condition: Option<Condition>,
    ) -> Result<(), Refusal> {
        let (key, others): (Vec<_>, Vec<_>) =
            item.iter().partition(|(name, _)| keys.contains(name));
        let key: Item = key
            .into_iter()
            .map(|(name, value)| (name, value.clone()))
            .collect();
        let there = self.get(table, key.clone()).await?.unwrap_or_default();
        let mut update = Update::new();
        for (name, value) in others
            .into_iter()
            .filter(|(name, _)| there.get(name).is_none())
        {
            let kept = UpdateOperand::if_not_exists(Path::new(name), value.clone());
            update = update.set(Path::new(name), kept);
        }
        let owner = there.get(schema::WIRELESS_DEVICE_ID);
        let wanted = item.get(schema::WIRELESS_DEVICE_ID);
        if condition.is_some() && owner.is_some() && wanted.is_some() && owner != wanted {
            return Err(Refusal::Item(
                "its SC-ID belongs to another UUID".to_owned(),
            ));
        }
        // An item that has only its key exists once it has been written.
        if self.dry_run || (update.is_empty() && !there.is_empty()) {
            return Ok(());
        }
        let request = UpdateRequest {
            condition,
            ..UpdateRequest::new(table, key, update)
        };
        match self.store.update(request).await {
            Ok(_) => Ok(()),
            Err(WriteError::ConditionFailed { .. }) => Err(Refusal::Item(
                "its SC-ID belongs to another UUID".to_owned(),
            )),
            Err(WriteError::Store(StoreError::Invalid(reason))) => {
                Err(Refusal::Item(reason.to_string()))
            }
            Err(WriteError::Store(error)) => Err(Refusal::Store(error)),
        }
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
                if self.is_anothers(*wireless).await? {
                    return Err(Refusal::Item(
                        "its SC-ID belongs to another UUID".to_owned(),
                    ));
                }
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

    async fn is_anothers(&self, wireless: WirelessDeviceId) -> Result<bool, Refusal> {
        let known = self
            .get(schema::DEVICES, state_key(&ScId::of(wireless)))
            .await?;
        let owner = known
            .as_ref()
            .and_then(|item| item.get(schema::WIRELESS_DEVICE_ID)?.as_str());
        Ok(owner.is_some_and(|owner| owner != wireless.to_string()))
    }

    async fn get(&self, table: &str, key: Item) -> Result<Option<Item>, Refusal> {
        match self.store.get(Get::new(table, key)).await {
            // A dry run may use a store without the new tables.
            Err(StoreError::TableNotFound(_)) if self.dry_run => Ok(None),
            answer => answer.map_err(Refusal::Store),
        }
    }
}

fn collision(device_id: &ScId, wireless: WirelessDeviceId, owner: &str) -> Refusal {
    Refusal::Item(format!(
        "{wireless} has the SC-ID {device_id}, which belongs to {owner}"
    ))
}

/// The readable key of an old item.
fn name(old: &Item) -> String {
    let parts = [schema::DEVICE_ID, old::TIMESTAMP, schema::DATE];
    let parts = parts.iter().filter_map(|name| match old.get(name)? {
        Value::S(text) => Some(text.clone()),
        Value::N(number) => Some(number.to_string()),
        _ => None,
    });
    parts.collect::<Vec<_>>().join(" ")
}

impl std::fmt::Debug for Migration {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Migration")
            .field("dry_run", &self.dry_run)
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}
