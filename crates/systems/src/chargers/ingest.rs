//! Stores events. An event is appended to the timeline once, even if the network repeats it, and updates the
//! device's state in the same transaction.
//!
//! The key of an event is its wall clock. If the key is occupied, the event moves forward by a millisecond. So
//! an event always starts at a key that only its own data determines, and a repeated event finds its first copy
//! before a free key: events are never removed, and a transaction leaves no key free that another event
//! skipped.

use std::collections::{BTreeMap, HashMap};

use homeport_item::expression::{
    Condition, KeyCondition, Path, Projection, SortCondition, Update, UpdateOperand,
};
use homeport_item::{Item, Value};
use homeport_store::{
    Action, CancelReason, Put, Query, StoreError, TransactError, Transaction,
    Update as UpdateRequest,
};

use super::decommission::SYSTEM;
use super::event::{Event, EventDevice, MOVES_MAX, NewEvent, UplinkId};
use super::mountain::{MountainTime, wall_clocks};
use super::state::{NotInState, StateDraft, state_key};
use super::types::{ScId, WirelessDeviceId};
use super::{Chargers, ChargersError, devices, schema};
use crate::removal;
use crate::time::{EpochMillis, UtcSecond};

/// Events of one device in one transaction, besides its state and its registration.
const EVENTS_PER_TRANSACTION: usize = 50;
/// Rounds of one request. Every round stores an event, or finds an occupied key or a newer state.
const ROUNDS_MAX: usize = 400;
/// Occupied keys that are found one by one before all keys around them are read.
const CROWD_MIN: usize = 4;
/// Attempts at a device's transaction while the store is busy.
const BUSY_MAX: usize = 8;

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

/// The actions that register a device: the registration, and the check that no removal is open.
const PROVISION_ACTIONS: usize = 2;
const NONE_OPEN_AT: usize = 1;

/// The transaction of one round.
struct Attempt {
    placed: Vec<(usize, Event)>,
    /// The attributes of each event that the state does not take.
    not_in_state: HashMap<usize, Vec<NotInState>>,
    /// Whether the first actions register the device.
    provisions: bool,
    state: Option<StateDraft>,
    transaction: Transaction,
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

    /// The next transaction of a device; `None` when everything is stored.
    fn attempt(
        &self,
        work: &mut Work,
        pending: &[Pending],
        outcomes: &mut [Option<EventOutcome>],
        now: EpochMillis,
    ) -> Option<Attempt> {
        let mut placed: Vec<(usize, Event)> = Vec::new();
        let mut claimed: HashMap<MountainTime, Option<UplinkId>> = HashMap::new();
        let mut settled = Vec::new();
        for &at in work.open.iter() {
            if placed.len() == EVENTS_PER_TRANSACTION {
                break;
            }
            let place = place(work, &pending[at], &claimed, now);
            match place {
                Place::Free(event) => {
                    claimed.insert(event.timestamp_mt, pending[at].uplink_id.clone());
                    placed.push((at, event));
                }
                Place::Settled(outcome) => {
                    outcomes[at] = Some(outcome);
                    settled.push(at);
                }
            }
        }
        work.open.retain(|at| !settled.contains(at));
        if placed.is_empty() {
            return None;
        }
        let received_at = UtcSecond::new(now.seconds());
        let mut actions: Vec<Action> = Vec::with_capacity(placed.len() + 3);
        let provisions = !work.is_provisioned;
        if provisions {
            actions.push(provision(&work.device_id, work.wireless, received_at).into());
            actions.push(removal::none_open(SYSTEM, work.device_id.as_str()));
        }
        for (at, event) in &placed {
            let item = event.to_item(pending[*at].uplink_id.as_ref(), received_at);
            actions.push(append(item).into());
        }
        let mut not_in_state = HashMap::new();
        let state = work.state.as_ref().map(|before| {
            let mut ordered: Vec<&(usize, Event)> = placed.iter().collect();
            ordered.sort_by_key(|(_, event)| (event.timestamp_utc, event.timestamp_mt));
            let remembered = |at: usize| {
                let Pending { event, uplink_id } = &pending[at];
                uplink_id.as_ref().filter(|_| event.occurred_at.is_none())
            };
            let events = ordered.iter().map(|(at, event)| (event, remembered(*at)));
            let (after, rejected) = before.after(events, now);
            not_in_state.extend(ordered.iter().map(|(at, _)| *at).zip(rejected));
            actions.extend(after.write(before, &work.device_id).map(Action::from));
            after
        });
        if state.is_none() {
            let all = placed.iter();
            not_in_state.extend(all.map(|(at, event)| (*at, NotInState::all(event))));
        }
        Some(Attempt {
            placed,
            not_in_state,
            provisions,
            state,
            transaction: Transaction::new(actions),
        })
    }
}

enum Place {
    Free(Event),
    Settled(EventOutcome),
}

/// The first key for an event that is not known to be occupied; `None` when the event is stored already.
fn place(
    work: &Work,
    pending: &Pending,
    claimed: &HashMap<MountainTime, Option<UplinkId>>,
    now: EpochMillis,
) -> Place {
    let duplicate = |timestamp_mt| {
        Place::Settled(EventOutcome::Duplicate {
            device_id: work.device_id.clone(),
            timestamp_mt,
        })
    };
    let event = &pending.event;
    let is_timeless = event.occurred_at.is_none();
    if let (Some(uplink_id), Some(state), true) = (&pending.uplink_id, &work.state, is_timeless)
        && let Some(timestamp_mt) = state.recent_key(uplink_id)
    {
        return duplicate(timestamp_mt);
    }
    let timestamp_utc = event.occurred_at.unwrap_or(now);
    for moved_ms in 0..MOVES_MAX {
        let timestamp_mt = MountainTime::of(EpochMillis(timestamp_utc.0 + moved_ms));
        match work.occupied.get(&timestamp_mt) {
            Some(Some(other)) if Some(other) == pending.uplink_id.as_ref() => {
                return duplicate(timestamp_mt);
            }
            Some(_) => {}
            None if claimed.contains_key(&timestamp_mt) => {}
            None => {
                return Place::Free(Event {
                    device_id: work.device_id.clone(),
                    wireless_device_id: Some(work.wireless.to_string()),
                    timestamp_mt,
                    timestamp_utc,
                    event_type: event.event_type.clone(),
                    data: event.data.clone(),
                });
            }
        }
    }
    Place::Settled(EventOutcome::Rejected(Rejection::TooManyAtOnce))
}

/// Processes the store's answer: stored events, occupied keys, a newer state.
fn judge(
    work: &mut Work,
    mut attempt: Attempt,
    answer: Result<(), TransactError>,
    pending: &[Pending],
    outcomes: &mut [Option<EventOutcome>],
) -> Result<(), ChargersError> {
    let mut settle = |work: &mut Work, at: usize, outcome: EventOutcome| {
        outcomes[at] = Some(outcome);
        work.open.retain(|open| *open != at);
    };
    let reasons = match answer {
        Ok(()) => {
            for (at, event) in attempt.placed {
                let uplink_id = pending[at].uplink_id.clone();
                work.occupied.insert(event.timestamp_mt, uplink_id);
                let not_in_state = attempt.not_in_state.remove(&at).unwrap_or_default();
                for NotInState { reason, .. } in &not_in_state {
                    metrics::counter!(
                        "homeport_charger_attributes_not_in_state_total", "reason" => reason.code()
                    )
                    .increment(1);
                }
                let stored = EventOutcome::Stored {
                    device_id: event.device_id,
                    timestamp_mt: event.timestamp_mt,
                    timestamp_utc: event.timestamp_utc,
                    not_in_state,
                };
                settle(work, at, stored);
            }
            work.is_provisioned = true;
            work.state = attempt.state;
            return Ok(());
        }
        Err(TransactError::Cancelled(reasons)) => reasons,
        Err(TransactError::Store(StoreError::Throttled)) => vec![CancelReason::Throttled],
        Err(TransactError::Store(StoreError::Invalid(reason))) => {
            for (at, _) in attempt.placed {
                let unstorable = Rejection::Unstorable(reason.to_string());
                settle(work, at, EventOutcome::Rejected(unstorable));
            }
            return Ok(());
        }
        Err(TransactError::Store(error)) => return Err(error.into()),
        Err(TransactError::TokenMismatch) => {
            return Err(StoreError::Unavailable("no token was sent".to_owned()).into());
        }
    };
    let mut learned = false;
    let events_at = if attempt.provisions {
        PROVISION_ACTIONS
    } else {
        0
    };
    let state_at = events_at + attempt.placed.len();
    for (action, reason) in reasons.into_iter().enumerate() {
        let placed = action
            .checked_sub(events_at)
            .and_then(|at| attempt.placed.get(at));
        match (reason, placed) {
            (CancelReason::ConditionFailed { old: Some(old) }, Some((_, event))) => {
                let other = UplinkId::stored_in(&old);
                work.occupied.insert(event.timestamp_mt, other);
                work.met += 1;
                work.crowd = (work.met >= CROWD_MIN).then_some(event.timestamp_utc);
                learned = true;
            }
            (CancelReason::ConditionFailed { .. }, None)
                if attempt.provisions && action == NONE_OPEN_AT =>
            {
                for at in std::mem::take(&mut work.open) {
                    let rejection = Rejection::BeingDecommissioned(work.device_id.clone());
                    outcomes[at] = Some(EventOutcome::Rejected(rejection));
                }
                return Ok(());
            }
            (CancelReason::ConditionFailed { old }, None) if action == state_at => {
                // A registered device without a state may have been decommissioned just now.
                work.is_provisioned &= old.is_some();
                work.state = Some(StateDraft::new(old.map(|item| *item)));
                learned = true;
            }
            (CancelReason::ConditionFailed { old: Some(old) }, None) => {
                let owner = old.get(schema::WIRELESS_DEVICE_ID);
                let owner = owner.and_then(|owner| owner.as_str()).unwrap_or("another");
                let open = std::mem::take(&mut work.open);
                collide(&open, &work.device_id, work.wireless, owner, outcomes);
                return Ok(());
            }
            (CancelReason::Invalid(reason), Some((at, _))) => {
                let unstorable = Rejection::Unstorable(reason.to_string());
                settle(work, *at, EventOutcome::Rejected(unstorable));
                learned = true;
            }
            (CancelReason::Invalid(reason), None) if action == state_at => {
                tracing::warn!(device_id = %work.device_id, %reason, "the store rejects the state of a device");
                work.state = None;
                learned = true;
            }
            _ => {}
        }
    }
    if !learned {
        work.busy += 1;
        if work.busy > BUSY_MAX {
            return Err(StoreError::Throttled.into());
        }
    }
    Ok(())
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

/// Registers a device, unless its SC-ID belongs to another device.
pub(super) fn provision(
    device_id: &ScId,
    wireless: WirelessDeviceId,
    at: UtcSecond,
) -> UpdateRequest {
    let first = UpdateOperand::if_not_exists(schema::PROVISIONED_AT, at.to_string());
    let update = Update::new()
        .set(schema::WIRELESS_DEVICE_ID, &wireless)
        .set(schema::PROVISIONED_AT, first);
    let is_own = Condition::not_exists(schema::WIRELESS_DEVICE_ID)
        .or(Path::new(schema::WIRELESS_DEVICE_ID).equals(&wireless));
    UpdateRequest {
        old_on_failure: true,
        ..UpdateRequest::new(schema::DEVICES, state_key(device_id), update).when(is_own)
    }
}

/// Appends an event to the timeline if its key is free.
pub(super) fn append(item: Item) -> Put {
    Put {
        old_on_failure: true,
        ..Put::new(schema::EVENTS, item).when(Condition::not_exists(schema::DEVICE_ID))
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
