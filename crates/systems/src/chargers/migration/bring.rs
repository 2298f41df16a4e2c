//! Writes old items to the new tables, all items of a step together.

use std::collections::BTreeMap;

use homeport_item::expression::{Condition, Path, Update, UpdateOperand};
use homeport_item::{Item, Value};
use homeport_store::{
    CancelReason, InvalidRequest, StoreError, TransactError, Transaction, Update as UpdateRequest,
};

use super::progress::{Counts, Source};
use super::{Migration, Moved, OldEvent, OldItem, Refusal, Seen};
use crate::chargers::event::{MOVES_MAX, UplinkId};
use crate::chargers::mountain::MountainTime;
use crate::chargers::state::state_key;
use crate::chargers::types::{ScId, WirelessDeviceId};
use crate::chargers::{ChargersError, devices, ingest, schema};
use crate::time::EpochMillis;

/// Attempts at transactions that conflict with others, besides those that an event needs to find a free key.
const BUSY_MAX: i64 = 100;

/// An old item that is being written.
struct Pending {
    /// The key of the old item.
    key: Item,
    write: Write,
}

enum Write {
    /// Missing attributes of an item; `None` if there are none.
    Complete(Kind, Option<Box<UpdateRequest>>),
    /// An event, which moves forward from occupied keys.
    Append {
        device_id: ScId,
        event: Box<OldEvent>,
        moved_ms: i64,
    },
}

#[derive(Clone, Copy)]
enum Kind {
    Device,
    State,
    Daily,
}

enum Outcome {
    Written,
    Retry,
    Refused(String),
}

impl Migration {
    /// Writes old items, and remembers those that cannot be written.
    pub(super) async fn bring(
        &mut self,
        source: Source,
        items: Vec<OldItem>,
        counts: &mut Counts,
    ) -> Result<(), StoreError> {
        self.learn_owners(&items).await?;
        let mut open = Vec::with_capacity(items.len());
        for OldItem { key, moved } in items {
            let prepared = match moved {
                Ok(moved) => self.prepare(moved).await,
                Err(reason) => Err(Refusal::Item(reason)),
            };
            match prepared {
                Ok(write) => open.push(Pending { key, write }),
                Err(Refusal::Item(reason)) => self.refuse(source, key, reason, counts).await?,
                Err(Refusal::Store(error)) => return Err(error),
            }
        }
        let mut newest = BTreeMap::new();
        for _ in 0..MOVES_MAX + BUSY_MAX {
            if open.is_empty() {
                return self.see_all(newest).await;
            }
            let answers = self.write(&open).await;
            let mut left = Vec::new();
            for (mut pending, answer) in open.into_iter().zip(answers) {
                match pending.write.judge(answer)? {
                    Outcome::Written => pending.write.count(counts, &mut newest),
                    Outcome::Retry => left.push(pending),
                    Outcome::Refused(reason) => {
                        self.refuse(source, pending.key, reason, counts).await?;
                    }
                }
            }
            open = left;
        }
        Err(StoreError::Throttled)
    }

    /// Finds the owners of the SC-IDs of events and states, and registers devices that are not in the registry.
    async fn learn_owners(&mut self, items: &[OldItem]) -> Result<(), StoreError> {
        let mut unknown: BTreeMap<ScId, WirelessDeviceId> = BTreeMap::new();
        for item in items {
            let wireless = match &item.moved {
                Ok(Moved::Event(event)) => event.wireless,
                Ok(Moved::State { wireless, .. }) => *wireless,
                _ => continue,
            };
            let device_id = ScId::of(wireless);
            if !self.owners.contains_key(&device_id) {
                unknown.entry(device_id).or_insert(wireless);
            }
        }
        let ids = unknown.keys().cloned();
        let known = match devices::fetch(&*self.store, schema::DEVICES, ids).await {
            Err(ChargersError::Store(StoreError::TableNotFound(_))) if self.dry_run => {
                BTreeMap::new()
            }
            Err(ChargersError::Store(error)) => return Err(error),
            Err(error) => return Err(StoreError::Unavailable(error.to_string())),
            Ok(known) => known,
        };
        for (device_id, registration) in known {
            if let Some(owner) = devices::wireless_of(&registration) {
                unknown.remove(&device_id);
                self.owners.insert(device_id, owner);
            }
        }
        if self.dry_run {
            self.owners.extend(unknown);
            return Ok(());
        }
        for _ in 0..BUSY_MAX {
            if unknown.is_empty() {
                return Ok(());
            }
            let provisions = unknown.iter().map(|(device_id, wireless)| {
                let provision = ingest::provision(device_id, *wireless, self.now);
                Transaction::new(vec![provision.into()])
            });
            let answers = self.store.transact_each(provisions.collect()).await;
            for ((device_id, wireless), answer) in
                std::mem::take(&mut unknown).into_iter().zip(answers)
            {
                match first_reason(answer)? {
                    Reason::None => drop(self.owners.insert(device_id, wireless)),
                    Reason::ConditionFailed(old) => {
                        if let Some(owner) = old.as_ref().and_then(devices::wireless_of) {
                            self.owners.insert(device_id, owner);
                        }
                    }
                    Reason::Invalid(reason) => return Err(StoreError::Invalid(reason)),
                    Reason::Busy => drop(unknown.insert(device_id, wireless)),
                }
            }
        }
        Err(StoreError::Throttled)
    }

    /// The SC-ID of a device, unless it belongs to another one.
    fn owned(&self, wireless: WirelessDeviceId) -> Result<ScId, Refusal> {
        let device_id = ScId::of(wireless);
        match self.owners.get(&device_id) {
            Some(owner) if *owner == wireless => Ok(device_id),
            Some(owner) => Err(collision(&device_id, wireless, &owner.to_string())),
            None => Err(collision(&device_id, wireless, "another device")),
        }
    }

    async fn prepare(&mut self, moved: Moved) -> Result<Write, Refusal> {
        let (kind, table, item, condition) = match moved {
            Moved::Event(event) => {
                return Ok(Write::Append {
                    device_id: self.owned(event.wireless)?,
                    event: Box::new(event),
                    moved_ms: 0,
                });
            }
            Moved::Device(item) => {
                let condition = self.claim(&item).await?;
                (Kind::Device, schema::DEVICES, item, Some(condition))
            }
            Moved::Daily(item) => (Kind::Daily, schema::DAILY_STATS, item, None),
            Moved::State {
                wireless,
                attributes,
            } => {
                let device_id = self.owned(wireless)?;
                let item = attributes
                    .with(schema::DEVICE_ID, &device_id)
                    .with(schema::WIRELESS_DEVICE_ID, &wireless);
                (Kind::State, schema::DEVICE_STATE, item, None)
            }
        };
        let update = self.complete(table, &item, condition).await?;
        Ok(Write::Complete(kind, update.map(Box::new)))
    }

    /// The condition that the SC-ID of a registration is free or its own, as far as it is known.
    async fn claim(&mut self, registration: &Item) -> Result<Condition, Refusal> {
        let free = Condition::not_exists(schema::WIRELESS_DEVICE_ID);
        let Some(wireless) = devices::wireless_of(registration) else {
            return Ok(free);
        };
        let device_id = ScId::of(wireless);
        let stored = self.get(schema::DEVICES, state_key(&device_id)).await?;
        if let Some(owner) = stored.as_ref().and_then(devices::wireless_of) {
            self.owners.insert(device_id.clone(), owner);
        }
        self.owners.entry(device_id).or_insert(wireless);
        self.owned(wireless)?;
        let text = registration.get(schema::WIRELESS_DEVICE_ID).cloned();
        let text = text.unwrap_or(Value::Null);
        let is_own = Path::new(schema::WIRELESS_DEVICE_ID);
        // Registrations may spell a UUID in upper case.
        let is_own = is_own.clone().equals(text).or(is_own.equals(&wireless));
        Ok(free.or(is_own))
    }

    /// The update that adds missing attributes to an item; existing ones keep their values.
    async fn complete(
        &self,
        table: &'static str,
        item: &Item,
        condition: Option<Condition>,
    ) -> Result<Option<UpdateRequest>, Refusal> {
        let keys: &[&str] = match table {
            schema::DAILY_STATS => &[schema::DEVICE_ID, schema::DATE],
            _ => &[schema::DEVICE_ID],
        };
        let (key, others): (Vec<_>, Vec<_>) =
            item.iter().partition(|(name, _)| keys.contains(name));
        let key: Item = key
            .into_iter()
            .map(|(name, value)| (name, value.clone()))
            .collect();
        let stored = self.get(table, key.clone()).await?.unwrap_or_default();
        let mut update = Update::new();
        let absent = others.into_iter();
        for (name, value) in absent.filter(|(name, _)| stored.get(name).is_none()) {
            let kept = UpdateOperand::if_not_exists(Path::new(name), value.clone());
            update = update.set(Path::new(name), kept);
        }
        // An item that has only its key exists once it has been written.
        let is_complete = update.is_empty() && !stored.is_empty();
        Ok((!is_complete).then(|| UpdateRequest {
            condition,
            ..UpdateRequest::new(table, key, update)
        }))
    }

    /// Writes items together; a dry run writes nothing.
    async fn write(&self, open: &[Pending]) -> Vec<Result<(), TransactError>> {
        let transactions: Vec<Option<Transaction>> = open
            .iter()
            .map(|pending| pending.write.transaction().filter(|_| !self.dry_run))
            .collect();
        let is_written: Vec<bool> = transactions.iter().map(Option::is_some).collect();
        let transactions: Vec<Transaction> = transactions.into_iter().flatten().collect();
        let mut answers = if transactions.is_empty() {
            Vec::new()
        } else {
            self.store.transact_each(transactions).await
        }
        .into_iter();
        let unanswered = || Err(TransactError::Store(StoreError::Throttled));
        is_written
            .into_iter()
            .map(|is_written| match is_written {
                true => answers.next().unwrap_or_else(unanswered),
                false => Ok(()),
            })
            .collect()
    }

    /// Updates the times of the newest events of devices.
    async fn see_all(&self, newest: BTreeMap<ScId, Seen>) -> Result<(), StoreError> {
        if self.dry_run {
            return Ok(());
        }
        let mut open: Vec<Transaction> = newest
            .iter()
            .map(|(device_id, seen)| Transaction::new(vec![seen.update(device_id).into()]))
            .collect();
        for _ in 0..BUSY_MAX {
            if open.is_empty() {
                return Ok(());
            }
            let answers = self.store.transact_each(open.clone()).await;
            let mut left = Vec::new();
            for (transaction, answer) in open.into_iter().zip(answers) {
                match first_reason(answer)? {
                    Reason::Busy => left.push(transaction),
                    Reason::Invalid(reason) => return Err(StoreError::Invalid(reason)),
                    // A newer event was seen before.
                    Reason::None | Reason::ConditionFailed(_) => {}
                }
            }
            open = left;
        }
        Err(StoreError::Throttled)
    }
}

impl Write {
    fn transaction(&self) -> Option<Transaction> {
        match self {
            Self::Complete(_, update) => {
                let update = update.as_deref()?.clone();
                Some(Transaction::new(vec![update.into()]))
            }
            Self::Append {
                device_id,
                event,
                moved_ms,
            } => {
                let mut item = event.item.clone();
                item.insert(schema::DEVICE_ID, device_id);
                item.insert(schema::TIMESTAMP_MT, event.key_after(*moved_ms));
                Some(Transaction::new(vec![ingest::append(item).into()]))
            }
        }
    }

    /// Processes the store's answer.
    fn judge(&mut self, answer: Result<(), TransactError>) -> Result<Outcome, StoreError> {
        let old = match first_reason(answer)? {
            Reason::None => return Ok(Outcome::Written),
            Reason::Busy => return Ok(Outcome::Retry),
            Reason::Invalid(reason) => return Ok(Outcome::Refused(reason.to_string())),
            Reason::ConditionFailed(old) => old,
        };
        let Self::Append {
            event, moved_ms, ..
        } = self
        else {
            let reason = "its SC-ID belongs to another UUID".to_owned();
            return Ok(Outcome::Refused(reason));
        };
        if old.as_ref().and_then(UplinkId::stored_in).as_ref() == Some(&event.uplink_id) {
            return Ok(Outcome::Written);
        }
        *moved_ms += 1;
        if *moved_ms < MOVES_MAX {
            Ok(Outcome::Retry)
        } else {
            Ok(Outcome::Refused(format!(
                "the charger already has {MOVES_MAX} events at this time"
            )))
        }
    }

    fn count(self, counts: &mut Counts, newest: &mut BTreeMap<ScId, Seen>) {
        match self {
            Self::Complete(Kind::Device, _) => counts.devices += 1,
            Self::Complete(Kind::State, _) => counts.states += 1,
            Self::Complete(Kind::Daily, _) => counts.daily += 1,
            Self::Append {
                device_id,
                event,
                moved_ms,
            } => {
                counts.events += 1;
                let is_newest = |seen: &Seen| seen.event.at < event.at;
                if newest.get(&device_id).is_none_or(is_newest) {
                    let timestamp_mt = event.key_after(moved_ms);
                    let event = *event;
                    newest.insert(
                        device_id,
                        Seen {
                            event,
                            timestamp_mt,
                        },
                    );
                }
            }
        }
    }
}

impl OldEvent {
    fn key_after(&self, moved_ms: i64) -> MountainTime {
        MountainTime::of(EpochMillis(self.at.0 + moved_ms))
    }
}

impl Seen {
    fn update(&self, device_id: &ScId) -> UpdateRequest {
        let event_type = self.event.item.get(schema::EVENT_TYPE).cloned();
        let at = self.event.at.0;
        let update = Update::new()
            .set(schema::WIRELESS_DEVICE_ID, &self.event.wireless)
            .set(schema::LAST_SEEN_UTC_MS, at)
            .set(schema::LAST_SEEN_MT, self.timestamp_mt)
            .set(schema::LAST_EVENT_TYPE, event_type.unwrap_or(Value::Null))
            // An uplink that read the state before this write must read it again.
            .add(schema::REVISION, 1);
        let is_newer = Condition::not_exists(schema::LAST_SEEN_UTC_MS)
            .or(Path::new(schema::LAST_SEEN_UTC_MS).less_than(at));
        UpdateRequest::new(schema::DEVICE_STATE, state_key(device_id), update).when(is_newer)
    }
}

/// Why a transaction of one action was not carried out.
enum Reason {
    /// It was.
    None,
    ConditionFailed(Option<Item>),
    Invalid(InvalidRequest),
    /// It may succeed later.
    Busy,
}

fn first_reason(answer: Result<(), TransactError>) -> Result<Reason, StoreError> {
    match answer {
        Ok(()) => Ok(Reason::None),
        Err(TransactError::Cancelled(reasons)) => Ok(match reasons.into_iter().next() {
            Some(CancelReason::ConditionFailed { old }) => {
                Reason::ConditionFailed(old.map(|old| *old))
            }
            Some(CancelReason::Invalid(reason)) => Reason::Invalid(reason),
            _ => Reason::Busy,
        }),
        Err(TransactError::Store(StoreError::Invalid(reason))) => Ok(Reason::Invalid(reason)),
        Err(TransactError::Store(StoreError::Throttled) | TransactError::TokenMismatch) => {
            Ok(Reason::Busy)
        }
        Err(TransactError::Store(error)) => Err(error),
    }
}

fn collision(device_id: &ScId, wireless: WirelessDeviceId, owner: &str) -> Refusal {
    Refusal::Item(format!(
        "{wireless} has the SC-ID {device_id}, which belongs to {owner}"
    ))
}
