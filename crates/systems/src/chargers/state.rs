//! The state of a device: attributes that events report, and attributes that operators set. For each reported
//! attribute the newest event wins, in whatever order events arrive. An attribute that an event does not
//! contain keeps its value.

use std::collections::BTreeMap;

use homeport_item::expression::{Condition, Path, Update};
use homeport_item::{Item, Map, Number, Value};
use homeport_store::{
    Action, ConditionCheck, Get, TransactError, Transaction, Update as UpdateRequest,
};
use homeport_store::{CancelReason, StoreError};

use super::decommission::is_unchanged;
use super::devices::{missing, wireless_of};
use super::event::{Event, MOVES_MAX, UplinkId};
use super::mountain::MountainTime;
use super::types::{DeviceName, NAME_LEN_MAX, ScId, is_name};
use super::{Chargers, ChargersError, schema};
use crate::text::InvalidField;
use crate::time::EpochMillis;

/// Attributes that devices may put into their state. Known attributes are always updated; further ones are only in
/// the events, and the answer to the event names them.
pub const REPORTED_MAX: usize = 128;
/// Attributes that operators may set on one device.
pub const SET_MAX: usize = 128;
/// Largest size of one attribute of a state.
pub const STATE_VALUE_BYTES_MAX: usize = 1024;
/// Uplinks without a time that are remembered, and for how long.
pub const RECENT_UPLINKS_MAX: usize = 64;
pub const RECENT_UPLINKS_MS: i64 = 24 * 60 * 60 * 1000;
/// Attempts at setting a state.
const ATTEMPTS_MAX: usize = 4;

/// Attributes of the server, besides those of operators.
const RESERVED: [&str; 9] = [
    schema::DEVICE_ID,
    schema::WIRELESS_DEVICE_ID,
    schema::LAST_SEEN_MT,
    schema::LAST_SEEN_UTC_MS,
    schema::LAST_EVENT_TYPE,
    schema::REPORTED_UTC_MS,
    schema::RECENT_UPLINKS,
    schema::REVISION,
    schema::TIMESTAMP_MT,
];

/// A change by an operator: attributes to set, and attributes without a value to remove.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatePatch(BTreeMap<String, Option<Value>>);

/// An attribute that is stored with an event, but not in the state of the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotInState {
    pub attribute: String,
    pub reason: NotInStateReason,
}

/// Why an attribute of an event is not in the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotInStateReason {
    #[error("the state already has {REPORTED_MAX} reported attributes")]
    TooManyAttributes,
    #[error("the value is larger than {STATE_VALUE_BYTES_MAX} bytes")]
    ValueTooLarge,
    #[error("only operators set attributes with this prefix")]
    OperatorAttribute,
    #[error("the server uses this name for an attribute of its own")]
    ReservedName,
    #[error("the store rejects the state of the device, which is probably too large")]
    StateRejected,
}

/// A state that is read once and changed in memory until a transaction writes it.
#[derive(Debug, Clone, Default)]
pub(super) struct StateDraft {
    item: Item,
}

impl StatePatch {
    /// Whether operators may change the attribute `name`.
    #[must_use]
    pub fn may_change(name: &str) -> bool {
        is_operators(name) && is_name(name, NAME_LEN_MAX)
    }

    /// # Errors
    /// When a name is not an operator's attribute or a value is too large.
    pub fn new(changes: BTreeMap<String, Option<Value>>) -> Result<Self, InvalidField> {
        let invalid = |expected| InvalidField {
            field: "the state",
            expected,
        };
        if changes.is_empty() || changes.len() > SET_MAX {
            return Err(invalid("1 to 128 attributes to change"));
        }
        if !changes.keys().all(|name| Self::may_change(name)) {
            return Err(invalid(
                "attributes that begin with scheduler_, ota_, time_sync_ or divergence_",
            ));
        }
        let fits = |value: &Value| value.size() <= STATE_VALUE_BYTES_MAX && value.depth() <= 8;
        if !changes.values().flatten().all(fits) {
            return Err(invalid(
                "attributes of at most 1024 bytes, nested at most 8 levels",
            ));
        }
        Ok(Self(changes))
    }
}

impl NotInStateReason {
    /// The stable code, for clients and metrics.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::TooManyAttributes => "TOO_MANY_ATTRIBUTES",
            Self::ValueTooLarge => "VALUE_TOO_LARGE",
            Self::OperatorAttribute => "OPERATOR_ATTRIBUTE",
            Self::ReservedName => "RESERVED_NAME",
            Self::StateRejected => "STATE_REJECTED",
        }
    }
}

impl NotInState {
    /// All attributes of an event, for a device without a usable state.
    pub(super) fn all(event: &Event) -> Vec<Self> {
        let names = event.data.members().keys();
        names
            .map(|name| Self {
                attribute: name.to_string(),
                reason: NotInStateReason::StateRejected,
            })
            .collect()
    }
}

impl StateDraft {
    pub(super) fn new(item: Option<Item>) -> Self {
        Self {
            item: item.unwrap_or_default(),
        }
    }

    /// The key of an uplink without a time that was stored recently.
    pub(super) fn recent_key(&self, uplink_id: &UplinkId) -> Option<MountainTime> {
        let recent = self.map(schema::RECENT_UPLINKS)?;
        let at = recent.get(uplink_id.as_str())?.as_number()?.to_i64()?;
        Some(MountainTime::of(EpochMillis(at)))
    }

    /// The state after further events, which must be sorted by time, and for each event the attributes that are not
    /// in the state.
    pub(super) fn after<'a>(
        &self,
        events: impl Iterator<Item = (&'a Event, Option<&'a UplinkId>)>,
        now: EpochMillis,
    ) -> (Self, Vec<Vec<NotInState>>) {
        let mut item = self.item.clone();
        let mut not_in_state = Vec::new();
        let mut reported = self
            .map(schema::REPORTED_UTC_MS)
            .cloned()
            .unwrap_or_default();
        let mut recent = self
            .map(schema::RECENT_UPLINKS)
            .cloned()
            .unwrap_or_default();
        for (event, remembered) in events {
            not_in_state.push(report(&mut item, &mut reported, event));
            if let Some(uplink_id) = remembered {
                let key_at = key_instant(event);
                recent.insert(uplink_id.as_str().to_owned(), key_at.0.into());
            }
        }
        forget(&mut recent, now);
        for (name, map) in [
            (schema::REPORTED_UTC_MS, reported),
            (schema::RECENT_UPLINKS, recent),
        ] {
            if !map.is_empty() || item.get(name).is_some() {
                item.insert(name, Value::M(map));
            }
        }
        let changed = item != self.item;
        if changed {
            let revision = self.revision().unwrap_or(0).saturating_add(1);
            item.insert(schema::REVISION, revision);
        }
        (Self { item }, not_in_state)
    }

    /// The update from the state `before` to this one, on the condition that it has not changed.
    pub(super) fn write(&self, before: &Self, device_id: &ScId) -> Option<UpdateRequest> {
        let mut update = Update::new();
        for (name, value) in self.item.iter() {
            if name != schema::DEVICE_ID && before.item.get(name) != Some(value) {
                update = update.set(Path::new(name), value.clone());
            }
        }
        if update.is_empty() {
            return None;
        }
        let unchanged = match before.revision() {
            Some(revision) => Path::new(schema::REVISION).equals(revision),
            None => Condition::not_exists(schema::REVISION),
        };
        Some(UpdateRequest {
            old_on_failure: true,
            ..UpdateRequest::new(schema::DEVICE_STATE, state_key(device_id), update).when(unchanged)
        })
    }

    fn revision(&self) -> Option<i64> {
        integer(&self.item, schema::REVISION)
    }

    fn map(&self, name: &str) -> Option<&Map> {
        self.item.get(name).and_then(Value::as_map)
    }
}

/// Applies one event to a state: each attribute for which the event is the newest. Returns the attributes that cannot
/// be in the state.
fn report(item: &mut Item, reported: &mut Map, event: &Event) -> Vec<NotInState> {
    let mut not_in_state = Vec::new();
    let at = event.timestamp_utc.0;
    if let Some(wireless) = &event.wireless_device_id {
        item.insert(schema::WIRELESS_DEVICE_ID, wireless.as_str());
    }
    if integer(item, schema::LAST_SEEN_UTC_MS).is_none_or(|seen| seen <= at) {
        item.insert(schema::LAST_SEEN_UTC_MS, at);
        item.insert(schema::LAST_SEEN_MT, event.timestamp_mt);
        item.insert(schema::LAST_EVENT_TYPE, &event.event_type);
    }
    for (name, value) in event.data.members() {
        let known = reported.get(name).and_then(Value::as_number);
        let known = known.and_then(Number::to_i64);
        let reason = if RESERVED.contains(&name.as_str()) {
            NotInStateReason::ReservedName
        } else if is_operators(name) {
            NotInStateReason::OperatorAttribute
        } else if value.size() > STATE_VALUE_BYTES_MAX {
            NotInStateReason::ValueTooLarge
        } else if known.is_none() && reported.len() >= REPORTED_MAX {
            NotInStateReason::TooManyAttributes
        } else {
            if known.is_none_or(|known| known <= at) {
                item.insert(name, value.clone());
                reported.insert(name.clone(), at.into());
            }
            continue;
        };
        not_in_state.push(NotInState {
            attribute: name.to_string(),
            reason,
        });
    }
    not_in_state
}

/// The instant whose wall clock is the key of an event.
fn key_instant(event: &Event) -> EpochMillis {
    let start = event.timestamp_utc.0;
    let candidates = [event.timestamp_mt.earliest(), event.timestamp_mt.latest()];
    let mut candidates = candidates.into_iter();
    candidates
        .find(|at| (start..start + MOVES_MAX).contains(&at.0))
        .unwrap_or(event.timestamp_utc)
}

/// Drops old remembered uplinks, and the oldest ones when there are too many.
fn forget(recent: &mut Map, now: EpochMillis) {
    let time = |value: &Value| value.as_number().and_then(Number::to_i64).unwrap_or(0);
    recent.retain(|_, at| time(at) > now.0.saturating_sub(RECENT_UPLINKS_MS));
    while recent.len() > RECENT_UPLINKS_MAX {
        let oldest = recent.iter().min_by_key(|(_, at)| time(at));
        let Some(oldest) = oldest.map(|(name, _)| name.clone()) else {
            return;
        };
        recent.remove(&oldest);
    }
}

impl Chargers {
    /// Sets and removes attributes of operators.
    ///
    /// # Errors
    /// When there is no such device, it would have too many attributes, or the store fails.
    pub async fn patch_state(
        &self,
        name: &DeviceName,
        patch: StatePatch,
    ) -> Result<Item, ChargersError> {
        let device_id = &name.sc_id();
        let registration = self.registration(device_id).await?.unwrap_or_default();
        let is_anothers = |owner| match name {
            DeviceName::Wireless(wireless) => *wireless != owner,
            DeviceName::ScId(_) => false,
        };
        if wireless_of(&registration).is_some_and(is_anothers) {
            return Err(ChargersError::DeviceMissing(name.clone()));
        }
        let current = self.state_item(device_id).await?.unwrap_or_default();
        let added = patch
            .0
            .iter()
            .filter(|(name, value)| value.is_some() && current.get(name).is_none());
        let set = current
            .iter()
            .filter(|(name, _)| is_operators(name))
            .count();
        if set + added.count() > SET_MAX {
            return Err(ChargersError::Invalid(InvalidField {
                field: "the state",
                expected: "left with at most 128 attributes set",
            }));
        }
        let mut update = Update::new();
        for (name, value) in patch.0 {
            let path = Path::new(name);
            update = match value {
                Some(value) => update.set(path, value),
                None => update.remove(path),
            };
        }
        // The device that was read may be decommissioned and its SC-ID registered for another one in the meantime.
        let known = ConditionCheck::new(
            schema::DEVICES,
            state_key(device_id),
            Condition::exists(schema::DEVICE_ID).and(is_unchanged(&registration)),
        );
        let request = UpdateRequest::new(schema::DEVICE_STATE, state_key(device_id), update);
        let transaction = Transaction::new(vec![Action::Check(known), request.into()]);
        for _ in 0..ATTEMPTS_MAX {
            match self.store.transact(transaction.clone()).await {
                Ok(()) => return self.state(device_id).await,
                Err(TransactError::Cancelled(reasons)) => {
                    if matches!(reasons.first(), Some(CancelReason::ConditionFailed { .. })) {
                        return Err(missing(device_id));
                    }
                }
                Err(TransactError::Store(StoreError::Throttled)) => {}
                Err(TransactError::Store(error)) => return Err(error.into()),
                Err(TransactError::TokenMismatch) => break,
            }
        }
        Err(StoreError::Throttled.into())
    }

    /// The state of a device, without attributes that only the server needs.
    ///
    /// # Errors
    /// When there is no such device or the store fails.
    pub async fn state(&self, device_id: &ScId) -> Result<Item, ChargersError> {
        if let Some(item) = self.state_item(device_id).await? {
            return Ok(shown(item));
        }
        // Registered, but without a report yet.
        self.device(device_id).await?;
        Ok(state_key(device_id))
    }

    pub(super) async fn state_item(&self, device_id: &ScId) -> Result<Option<Item>, StoreError> {
        let request = Get::new(schema::DEVICE_STATE, state_key(device_id));
        self.store.get(request).await
    }
}

/// A state without the server's attributes.
pub(super) fn shown(mut state: Item) -> Item {
    for name in [
        schema::REPORTED_UTC_MS,
        schema::RECENT_UPLINKS,
        schema::REVISION,
    ] {
        state.remove(name);
    }
    state
}

/// The key of a state, which is also the key of the device.
pub(super) fn state_key(device_id: &ScId) -> Item {
    Item::new().with(schema::DEVICE_ID, device_id)
}

fn is_operators(name: &str) -> bool {
    schema::STATE_PREFIXES
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

fn integer(item: &Item, name: &str) -> Option<i64> {
    item.get(name)
        .and_then(Value::as_number)
        .and_then(Number::to_i64)
}
