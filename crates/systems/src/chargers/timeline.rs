//! Timelines: events in a range of instants, in true order, of one device or of one type across the
//! fleet.
//!
//! Keys are wall clocks, which sort almost by time: an event's key may be up to [`MOVES_MAX`] milliseconds
//! late, and in November an hour repeats. So events are read in key order and held back until no unread key can
//! belong before them.

use std::collections::BTreeSet;

use homeport_item::expression::{KeyCondition, Path, SortCondition};
use homeport_item::{Item, Number, Value};
use homeport_store::{Query, Store};

use super::decommission::SYSTEM;
use super::event::{Event, MOVES_MAX};
use super::mountain::{MountainTime, wall_clocks};
use super::types::{EventType, ScId};
use super::{Chargers, ChargersError, PAGE_MAX, schema};
use crate::cursor::{Cursor, CursorError};
use crate::pages::Page;
use crate::removal;
use crate::time::{EpochMillis, Order};

/// The instants before the first and after the last possible event.
const FROM_MS_MIN: i64 = 0;
const TO_MS_MAX: i64 = 4_133_980_800_000;
/// The fewest items that are read at once: most pages of a timeline are longer.
const READ_MIN: usize = 32;
/// Items that are read at once where a filter drops most of them.
const READ_FILTERED: usize = 500;

/// Which events are wanted; both ends are included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventRange {
    pub from: Option<EpochMillis>,
    pub to: Option<EpochMillis>,
    pub order: Order,
}

/// The device or the type whose events are read.
#[derive(Clone, Copy)]
pub(super) enum Timeline<'a> {
    Device(&'a ScId, Option<&'a EventType>),
    Fleet(&'a EventType),
}

/// The position of an event in the order of time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    at: EpochMillis,
    key: MountainTime,
    device_id: ScId,
}

impl Chargers {
    /// Events of a device in a range of time, of one type or of all types.
    ///
    /// # Errors
    /// When the cursor belongs to another list or the store fails.
    pub async fn events(
        &self,
        device_id: &ScId,
        event_type: Option<&EventType>,
        range: EventRange,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Page<Event>, ChargersError> {
        let list = format!(
            "chargers/events/{device_id}/{}/{}",
            event_type.map_or("", EventType::as_str),
            range.name()
        );
        if self.is_removed(device_id).await? {
            return Ok(Page::default());
        }
        let timeline = Timeline::Device(device_id, event_type);
        self.page(timeline, range, &list, limit, cursor).await
    }

    /// Events of one type across the fleet in a range of time.
    ///
    /// # Errors
    /// When the cursor belongs to another list or the store fails.
    pub async fn fleet_events(
        &self,
        event_type: &EventType,
        range: EventRange,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Page<Event>, ChargersError> {
        let list = format!("chargers/fleet-events/{event_type}/{}", range.name());
        let timeline = Timeline::Fleet(event_type);
        self.page(timeline, range, &list, limit, cursor).await
    }

    async fn page(
        &self,
        timeline: Timeline<'_>,
        range: EventRange,
        list: &str,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Page<Event>, ChargersError> {
        let limit = limit.clamp(1, PAGE_MAX);
        let after = match cursor {
            Some(cursor) => Some(Position::from_item(&cursor.start_of(list)?)?),
            None => None,
        };
        let mut events = self.visible(timeline, range, after, limit + 1).await?;
        let has_more = events.len() > limit;
        events.truncate(limit);
        let last = events.last().filter(|_| has_more);
        let next = last.map(|event| Cursor::new(list, Position::of(event).to_item()));
        Ok(Page {
            items: events,
            next,
        })
    }

    /// Events after a position, without those of chargers that are being removed.
    async fn visible(
        &self,
        timeline: Timeline<'_>,
        range: EventRange,
        mut after: Option<Position>,
        limit: usize,
    ) -> Result<Vec<Event>, ChargersError> {
        let removed = match timeline {
            Timeline::Device(..) => BTreeSet::new(),
            Timeline::Fleet(_) => removal::open_devices(&*self.store, SYSTEM).await?,
        };
        let mut visible = Vec::new();
        loop {
            let wanted = limit - visible.len();
            let page = read(&*self.store, timeline, range, after, wanted, false).await?;
            let is_last = page.len() < wanted;
            after = page.last().map(Position::of);
            let is_removed = |event: &Event| removed.contains(event.device_id.as_str());
            visible.extend(page.into_iter().filter(|event| !is_removed(event)));
            if is_last || visible.len() == limit {
                return Ok(visible);
            }
        }
    }
}

/// Up to `limit` events after a position, in true order.
pub(super) async fn read(
    store: &dyn Store,
    timeline: Timeline<'_>,
    range: EventRange,
    after: Option<Position>,
    limit: usize,
    consistent: bool,
) -> Result<Vec<Event>, ChargersError> {
    let descending = range.order == Order::NewestFirst;
    let (mut from, mut to) = range.bounds();
    if let Some(after) = &after {
        // Nothing before the position is needed.
        match range.order {
            Order::OldestFirst => from = from.max(after.at),
            Order::NewestFirst => to = to.min(after.at),
        }
    }
    if from > to {
        return Ok(Vec::new());
    }
    let mut query = timeline.query(from, to);
    query.descending = descending;
    query.consistent = consistent;
    let mut done: Vec<Event> = Vec::new();
    let mut held: Vec<Event> = Vec::new();
    loop {
        let wanted = (limit - done.len()).clamp(READ_MIN, PAGE_MAX);
        let wanted = query.filter.as_ref().map_or(wanted, |_| READ_FILTERED);
        let page = store.query(query.clone().limit(wanted)).await?;
        for item in &page.items {
            let event = match Event::from_item(item) {
                Ok(event) => event,
                Err(error) => {
                    // A malformed item that another program wrote must not hide the others.
                    tracing::warn!(%error, "left out an event that cannot be read");
                    continue;
                }
            };
            let is_wanted = (from..=to).contains(&event.timestamp_utc)
                && after.as_ref().is_none_or(|after| {
                    let position = Position::of(&event);
                    if descending {
                        position < *after
                    } else {
                        position > *after
                    }
                });
            if is_wanted {
                held.push(event);
            }
        }
        held.sort_by_cached_key(Position::of);
        if descending {
            held.reverse();
        }
        let Some(next) = page.next else {
            done.append(&mut held);
            break;
        };
        let reached = key_in(&next).ok();
        let is_settled = |event: &Event| match (reached, range.order) {
            // An unread event has a later wall clock and may be older by this much.
            (Some(reached), Order::OldestFirst) => {
                event.timestamp_utc.0 < reached.earliest().0 - (MOVES_MAX - 1)
            }
            // An unread event has an earlier wall clock and is not newer.
            (Some(reached), Order::NewestFirst) => event.timestamp_utc > reached.latest(),
            (None, _) => false,
        };
        let settled = held.partition_point(is_settled);
        done.extend(held.drain(..settled));
        if done.len() >= limit {
            break;
        }
        query.start = Some(next);
    }
    done.truncate(limit);
    Ok(done)
}

impl Timeline<'_> {
    fn query(&self, from: EpochMillis, to: EpochMillis) -> Query {
        // The key of an event may be this much later than its time.
        let (lowest, highest) = wall_clocks(from, EpochMillis(to.0 + MOVES_MAX - 1));
        let between = SortCondition::Between(lowest.into(), highest.into());
        let condition = match self {
            Self::Device(device_id, _) => KeyCondition::new(schema::DEVICE_ID, *device_id),
            Self::Fleet(event_type) => KeyCondition::new(schema::EVENT_TYPE, *event_type),
        };
        let query = Query::new(
            schema::EVENTS,
            condition.with_sort(schema::TIMESTAMP_MT, between),
        );
        match self {
            Self::Device(_, Some(event_type)) => {
                query.filter(Path::new(schema::EVENT_TYPE).equals(*event_type))
            }
            Self::Device(_, None) => query,
            Self::Fleet(_) => query.on_index(schema::EVENT_TYPE_INDEX),
        }
    }
}

impl EventRange {
    fn bounds(self) -> (EpochMillis, EpochMillis) {
        let bound = |given: Option<EpochMillis>, default: i64| {
            let ms = given.map_or(default, |given| given.0);
            EpochMillis(ms.clamp(FROM_MS_MIN, TO_MS_MAX))
        };
        (bound(self.from, FROM_MS_MIN), bound(self.to, TO_MS_MAX))
    }

    fn name(self) -> String {
        let (from, to) = self.bounds();
        format!("{}/{}/{:?}", from.0, to.0, self.order)
    }
}

impl Position {
    fn of(event: &Event) -> Self {
        Self {
            at: event.timestamp_utc,
            key: event.timestamp_mt,
            device_id: event.device_id.clone(),
        }
    }

    fn to_item(&self) -> Item {
        Item::new()
            .with(schema::TIMESTAMP_UTC_MS, self.at.0)
            .with(schema::TIMESTAMP_MT, self.key)
            .with(schema::DEVICE_ID, &self.device_id)
    }

    fn from_item(item: &Item) -> Result<Self, CursorError> {
        let number = item
            .get(schema::TIMESTAMP_UTC_MS)
            .and_then(Value::as_number);
        let device_id = item.get(schema::DEVICE_ID).and_then(Value::as_str);
        Ok(Self {
            at: EpochMillis(number.and_then(Number::to_i64).ok_or(CursorError)?),
            key: key_in(item)?,
            device_id: device_id
                .and_then(|text| text.parse().ok())
                .ok_or(CursorError)?,
        })
    }
}

fn key_in(item: &Item) -> Result<MountainTime, CursorError> {
    let text = item.get(schema::TIMESTAMP_MT).and_then(Value::as_str);
    text.and_then(|text| text.parse().ok()).ok_or(CursorError)
}
