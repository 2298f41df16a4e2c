//! Stores events. An event is appended to the timeline once, even if the network repeats it, and updates the
//! device's state in the same transaction.
//!
//! The key of an event is its wall clock. If the key is occupied, the event moves forward by a millisecond. So
//! an event always starts at a key that only its own data determines, and a repeated event finds its first copy
//! before a free key: events are never removed, and a transaction leaves no key free that another event
//! skipped.

mod answer;
mod attempt;

use std::collections::{BTreeMap, HashMap};

use homeport_item::Value;
use homeport_item::expression::{KeyCondition, Projection, SortCondition};
use homeport_store::{Query, StoreError};

use super::event::{EventDevice, MOVES_MAX, NewEvent, UplinkId};
use super::mountain::{MountainTime, wall_clocks};
use super::state::{NotInState, StateDraft};
use super::types::{ScId, WirelessDeviceId};
use super::{Chargers, ChargersError, devices, schema};
use crate::time::EpochMillis;
use answer::judge;

pub(super) use attempt::{append, provision};

/// Rounds of one request. Every round stores an event, or finds an occupied key or a newer state.
const ROUNDS_MAX: usize = 400;

/// The outcome for one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventOutcome {
    /// It was stored.
    Stored {
        device_id: ScId,
        timestamp_mt: MountainTime,
        timestamp_utc: EpochMillis,
        /// Attributes of the event that are not in the state of the device.
        not_in_state: Vec<NotInState>,
    },
    /// It had been stored before, under this key.
    Duplicate {
        device_id: ScId,
        timestamp_mt: MountainTime,
    },
    Rejected(Rejection),
}

/// Why an event is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    #[error(
        "there is no device {0}; the first event of a device must bring its wireless_device_id"
    )]
    UnknownDevice(ScId),
    #[error("{wireless_device_id} has the SC-ID {device_id}, which belongs to {owner}")]
    ScIdCollision {
        device_id: ScId,
        wireless_device_id: WirelessDeviceId,
        owner: String,
    },
    #[error("device {0} is being decommissioned")]
    BeingDecommissioned(ScId),
    #[error("the device already has {MOVES_MAX} events at this time")]
    TooManyAtOnce,
    #[error("the store rejects the event: {0}")]
    Unstorable(String),
}

/// The events of one device in one request.
struct Work {
    device_id: ScId,
    wireless: WirelessDeviceId,
    /// The registration of the device.
    is_provisioned: bool,
    /// `None` when the state is full. Events are still stored.
    state: Option<StateDraft>,
    /// The indexes of the request's events that are not stored yet.
    open: Vec<usize>,
    /// Known contents of keys.
    occupied: HashMap<MountainTime, Option<UplinkId>>,
    busy: usize,
    met: usize,
    /// A time with so many occupied keys around it that all of them should be read at once.
    crowd: Option<EpochMillis>,
}

/// An event that is being stored.
struct Pending {
    event: NewEvent,
    uplink_id: Option<UplinkId>,
}

impl Chargers {
    /// Stores independent events; the outcomes are in the same order.
    ///
    /// # Errors
    /// When the store fails. Events without an outcome may or may not be stored and can be sent again.
    pub async fn ingest(&self, events: Vec<NewEvent>) -> Result<Vec<EventOutcome>, ChargersError> {
        let now = self.now_ms();
        let mut outcomes: Vec<Option<EventOutcome>> = vec![None; events.len()];
        let wireless = self.resolve(&events, &mut outcomes).await?;
        let pending: Vec<Pending> = events
            .into_iter()
            .zip(&wireless)
            .map(|(event, wireless)| Pending {
                uplink_id: wireless.and_then(|wireless| event.uplink_id(wireless)),
                event,
            })
            .collect();
        let repeats = repeats(&pending, &wireless);
        let mut works = self.works(&wireless, &repeats, &mut outcomes).await?;
        for _ in 0..ROUNDS_MAX {
            let mut attempts = Vec::new();
            for (at, work) in works.iter_mut().enumerate() {
                if let Some(attempt) = self.attempt(work, &pending, &mut outcomes, now) {
                    attempts.push((at, attempt));
                }
            }
            if attempts.is_empty() {
                break;
            }
            let transactions = attempts
                .iter()
                .map(|(_, attempt)| attempt.transaction.clone())
                .collect();
            let answers = self.store.transact_each(transactions).await;
            for ((at, attempt), answer) in attempts.into_iter().zip(answers) {
                judge(&mut works[at], attempt, answer, &pending, &mut outcomes)?;
                self.read_crowd(&mut works[at]).await?;
            }
        }
        for (at, first) in repeats.into_iter().enumerate() {
            let Some(first) = first else { continue };
            // A rejected event is rejected again the second time.
            outcomes[at] = match outcomes[first].clone() {
                Some(EventOutcome::Stored {
                    device_id,
                    timestamp_mt,
                    ..
                }) => Some(EventOutcome::Duplicate {
                    device_id,
                    timestamp_mt,
                }),
                other => other,
            };
        }
        let outcomes: Option<Vec<_>> = outcomes.into_iter().collect();
        Ok(outcomes.ok_or(StoreError::Throttled)?)
    }

    /// The UUID of each event's device. A device that is named by its SC-ID must be registered.
    async fn resolve(
        &self,
        events: &[NewEvent],
        outcomes: &mut [Option<EventOutcome>],
    ) -> Result<Vec<Option<WirelessDeviceId>>, ChargersError> {
        let named = events.iter().filter_map(|event| match &event.device {
            EventDevice::ScId(sc_id) => Some(sc_id.clone()),
            EventDevice::Wireless(_) => None,
        });
        let known = devices::fetch(&*self.store, schema::DEVICES, named).await?;
        let resolved = events.iter().zip(outcomes).map(|(event, outcome)| {
            let sc_id = match &event.device {
                EventDevice::Wireless(wireless) => return Some(*wireless),
                EventDevice::ScId(sc_id) => sc_id,
            };
            let wireless = known.get(sc_id).and_then(devices::wireless_of);
            if wireless.is_none() {
                let unknown = Rejection::UnknownDevice(sc_id.clone());
                *outcome = Some(EventOutcome::Rejected(unknown));
            }
            wireless
        });
        Ok(resolved.collect())
    }

    /// The events by device, with the stored data about each device.
    async fn works(
        &self,
        wireless: &[Option<WirelessDeviceId>],
        repeats: &[Option<usize>],
        outcomes: &mut [Option<EventOutcome>],
    ) -> Result<Vec<Work>, ChargersError> {
        let mut open: BTreeMap<WirelessDeviceId, Vec<usize>> = BTreeMap::new();
        for (at, wireless) in wireless.iter().enumerate() {
            if let (Some(wireless), None) = (wireless, repeats[at]) {
                open.entry(*wireless).or_default().push(at);
            }
        }
        let ids = || open.keys().map(|wireless| ScId::of(*wireless));
        let known = devices::fetch(&*self.store, schema::DEVICES, ids()).await?;
        let mut states = devices::fetch(&*self.store, schema::DEVICE_STATE, ids()).await?;
        let mut works = Vec::with_capacity(open.len());
        for (wireless, open) in open {
            let device_id = ScId::of(wireless);
            let owner = known.get(&device_id).and_then(devices::wireless_of);
            if let Some(owner) = owner.filter(|owner| *owner != wireless) {
                collide(&open, &device_id, wireless, &owner.to_string(), outcomes);
                continue;
            }
            works.push(Work {
                wireless,
                is_provisioned: owner.is_some(),
                state: Some(StateDraft::new(states.remove(&device_id))),
                device_id,
                open,
                occupied: HashMap::new(),
                busy: 0,
                met: 0,
                crowd: None,
            });
        }
        Ok(works)
    }

    /// Reads all keys that an event may move to, where many of them are occupied.
    async fn read_crowd(&self, work: &mut Work) -> Result<(), ChargersError> {
        let Some(at) = work.crowd.take() else {
            return Ok(());
        };
        let (lowest, highest) = wall_clocks(at, EpochMillis(at.0 + MOVES_MAX - 1));
        let between = SortCondition::Between(lowest.into(), highest.into());
        let condition = KeyCondition::new(schema::DEVICE_ID, &work.device_id)
            .with_sort(schema::TIMESTAMP_MT, between);
        let mut query = Query::new(schema::EVENTS, condition);
        query.consistent = true;
        let keys = [schema::TIMESTAMP_MT, schema::UPLINK_ID];
        query.projection = Some(Projection::new(keys));
        loop {
            let page = self.store.query(query.clone()).await?;
            for item in &page.items {
                let key = item.get(schema::TIMESTAMP_MT).and_then(Value::as_str);
                if let Some(Ok(key)) = key.map(str::parse) {
                    work.occupied.insert(key, UplinkId::stored_in(item));
                }
            }
            query.start = page.next;
            if query.start.is_none() {
                work.met = 0;
                return Ok(());
            }
        }
    }
}

fn collide(
    open: &[usize],
    device_id: &ScId,
    wireless: WirelessDeviceId,
    owner: &str,
    outcomes: &mut [Option<EventOutcome>],
) {
    for at in open {
        outcomes[*at] = Some(EventOutcome::Rejected(Rejection::ScIdCollision {
            device_id: device_id.clone(),
            wireless_device_id: wireless,
            owner: owner.to_owned(),
        }));
    }
}

/// The index of the first identical event in the request, for each repeated event.
fn repeats(pending: &[Pending], wireless: &[Option<WirelessDeviceId>]) -> Vec<Option<usize>> {
    let mut first: HashMap<(&UplinkId, &WirelessDeviceId), usize> = HashMap::new();
    let repeats = pending.iter().zip(wireless).enumerate();
    repeats
        .map(|(at, (pending, wireless))| {
            let identity = (pending.uplink_id.as_ref()?, wireless.as_ref()?);
            let known = *first.entry(identity).or_insert(at);
            (known != at).then_some(known)
        })
        .collect()
}
