//! Builds the next transaction of a device: a key for each event, the registration of a new device, and the state
//! after the events.

use std::collections::HashMap;

use homeport_item::Item;
use homeport_item::expression::{Condition, Path, Update, UpdateOperand};
use homeport_store::{Action, Put, Transaction, Update as UpdateRequest};

use super::{EventOutcome, Pending, Rejection, Work};
use crate::chargers::decommission::SYSTEM;
use crate::chargers::event::{Event, MOVES_MAX, UplinkId};
use crate::chargers::mountain::MountainTime;
use crate::chargers::state::{NotInState, StateDraft, state_key};
use crate::chargers::types::{ScId, WirelessDeviceId};
use crate::chargers::{Chargers, schema};
use crate::removal;
use crate::time::{EpochMillis, UtcSecond};

/// Events of one device in one transaction, besides its state and its registration.
const EVENTS_PER_TRANSACTION: usize = 50;
/// The actions that register a device: the registration, and the check that no removal is open.
pub(super) const PROVISION_ACTIONS: usize = 2;
pub(super) const NONE_OPEN_AT: usize = 1;

/// The transaction of one round.
pub(super) struct Attempt {
    pub(super) placed: Vec<(usize, Event)>,
    /// The attributes of each event that the state does not take.
    pub(super) not_in_state: HashMap<usize, Vec<NotInState>>,
    /// Whether the first actions register the device.
    pub(super) provisions: bool,
    pub(super) state: Option<StateDraft>,
    pub(super) transaction: Transaction,
}

impl Chargers {
    /// The next transaction of a device; `None` when everything is stored.
    pub(super) fn attempt(
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
                    uplink: event.uplink.as_ref().map(|uplink| uplink.stored.clone()),
                });
            }
        }
    }
    Place::Settled(EventOutcome::Rejected(Rejection::TooManyAtOnce))
}

/// Registers a device, unless its SC-ID belongs to another device.
pub(in crate::chargers) fn provision(
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
pub(in crate::chargers) fn append(item: Item) -> Put {
    Put {
        old_on_failure: true,
        ..Put::new(schema::EVENTS, item).when(Condition::not_exists(schema::DEVICE_ID))
    }
}
