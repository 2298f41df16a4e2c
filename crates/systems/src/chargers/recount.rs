//! Daily statistics in the store: recounted from the events whenever a day may have changed, and read.

use std::collections::BTreeSet;

use homeport_item::expression::{Condition, KeyCondition, Path, SortCondition};
use homeport_item::{Item, Value};
use homeport_store::{Delete, Put, Query, WriteError};

use super::daily::{DailyStats, daily_key};
use super::event::Event;
use super::mountain::{MountainDay, MountainTime};
use super::timeline::{self, EventRange, Timeline};
use super::types::ScId;
use super::{Chargers, ChargersError, PAGE_MAX, schema};
use crate::cursor::Cursor;
use crate::pages::{self, Page};
use crate::text::InvalidField;
use crate::time::{EpochMillis, Order};

/// Longest range of days that are counted again: ten years.
pub const REBUILD_DAYS_MAX: usize = 3_660;
/// Events of two days of one device that are counted: one report per second. Further events are left out with a
/// warning.
const EVENTS_MAX: usize = 2 * 86_400;
/// Devices that are read at once.
const DEVICES_AT_ONCE: usize = 25;

/// The progress of a rebuild.
#[derive(Debug, Clone, PartialEq)]
pub struct Rebuilt {
    /// Days with events that were counted.
    pub days: usize,
    /// The position at which to continue; absent when everything is counted.
    pub next: Option<Cursor>,
}

/// The statistics that a count replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replaces {
    /// Only those that count fewer events, because of two concurrent counts the newer one saw more.
    CountsOfFewerEvents,
    AllCounts,
}

/// The days whose statistics an event can change: its own day, and the next day, on which a gap or session that
/// it starts may end. An item that is not an event changes none.
#[must_use]
pub fn affected_days(event: &Item) -> BTreeSet<(ScId, MountainDay)> {
    let Ok(event) = Event::from_item(event) else {
        return BTreeSet::new();
    };
    let day = MountainDay::of(event.timestamp_utc);
    BTreeSet::from([
        (event.device_id.clone(), day),
        (event.device_id, day.next()),
    ])
}

/// The days that the deletion of an event changes. The key of an event may be slightly later than its time.
pub(super) fn days_after_deletion(key: &Item) -> BTreeSet<(ScId, MountainDay)> {
    let text = |name: &str| key.get(name).and_then(Value::as_str);
    let device_id = text(schema::DEVICE_ID).and_then(|text| text.parse::<ScId>().ok());
    let key = text(schema::TIMESTAMP_MT).and_then(|text| text.parse::<MountainTime>().ok());
    let Some((device_id, day)) = device_id.zip(key.map(MountainTime::day)) else {
        return BTreeSet::new();
    };
    let days = [day.previous(), day, day.next()];
    days.into_iter()
        .map(|day| (device_id.clone(), day))
        .collect()
}

impl Chargers {
    /// Recounts days from the stored events. Counting is idempotent; of two concurrent counts, the one that saw
    /// more events wins. Days without events stay as they are. Returns the number of days with events.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn recount(
        &self,
        days: &BTreeSet<(ScId, MountainDay)>,
    ) -> Result<usize, ChargersError> {
        self.count_days(days, Replaces::CountsOfFewerEvents).await
    }

    /// Recounts days of which events were deleted. Days without events lose their statistics. Returns the number of
    /// days with events.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn recount_after_deletion(
        &self,
        days: &BTreeSet<(ScId, MountainDay)>,
    ) -> Result<usize, ChargersError> {
        self.count_days(days, Replaces::AllCounts).await
    }

    async fn count_days(
        &self,
        days: &BTreeSet<(ScId, MountainDay)>,
        replaces: Replaces,
    ) -> Result<usize, ChargersError> {
        let mut counted = 0;
        for (device_id, day) in days {
            counted += usize::from(self.count_day(device_id, *day, replaces).await?);
        }
        Ok(counted)
    }

    /// Counts one day and stores its statistics; returns whether the day has events. Migrated statistics are
    /// replaced only if they count no more events, and never removed: their events may be older than the stored ones.
    async fn count_day(
        &self,
        device_id: &ScId,
        day: MountainDay,
        replaces: Replaces,
    ) -> Result<bool, ChargersError> {
        let is_counted = Condition::not_exists(schema::MIGRATED_FROM);
        let counted = self.count(device_id, day).await?;
        let has_events = counted.is_some();
        let written = match (counted, replaces) {
            (Some(stats), _) => {
                let counts_more = Path::new(schema::EVENT_COUNT).at_most(stats.event_count);
                let may_replace = match replaces {
                    Replaces::AllCounts => is_counted,
                    // Without deletions, fewer events mean an older view of the day.
                    Replaces::CountsOfFewerEvents => {
                        is_counted.and(Condition::not_exists(schema::EVENT_COUNT))
                    }
                };
                let put = Put::new(schema::DAILY_STATS, stats.to_item(device_id, day));
                let put = put.when(may_replace.or(counts_more));
                self.store.put(put).await.map(drop)
            }
            (None, Replaces::AllCounts) => {
                let key = daily_key(device_id, day);
                let delete = Delete::new(schema::DAILY_STATS, key).when(is_counted);
                self.store.delete(delete).await.map(drop)
            }
            (None, Replaces::CountsOfFewerEvents) => Ok(()),
        };
        match written {
            Ok(()) | Err(WriteError::ConditionFailed { .. }) => Ok(has_events),
            Err(WriteError::Store(error)) => Err(error.into()),
        }
    }

    /// Recounts all days of a range, of one device or of all registered devices, whatever their current
    /// statistics. Days without events lose them, unless they were migrated. It reads at most `days_max` days and one more device, and returns the position at which to
    /// continue.
    ///
    /// # Errors
    /// When the range is too long, the cursor belongs to another rebuild, or the store fails.
    pub async fn rebuild(
        &self,
        device: Option<&ScId>,
        from: MountainDay,
        to: MountainDay,
        days_max: usize,
        cursor: Option<Cursor>,
    ) -> Result<Rebuilt, ChargersError> {
        let len = from.days_to(to);
        if len == 0 || len > REBUILD_DAYS_MAX {
            return Err(ChargersError::Invalid(InvalidField {
                field: "the range",
                expected: "1 to 3660 days long, and from must not be after to",
            }));
        }
        if let Some(device_id) = device {
            let days = self.rebuild_device(device_id, from, to).await?;
            return Ok(Rebuilt { days, next: None });
        }
        let list = format!("chargers/rebuild/{from}/{to}");
        let mut start = cursor.map(|cursor| cursor.start_of(&list)).transpose()?;
        let (mut days, mut looked_at) = (0, 0);
        loop {
            let room = (days_max.saturating_sub(looked_at) / len).clamp(1, DEVICES_AT_ONCE);
            let (devices, next) = self.registered(start, room).await?;
            for device_id in &devices {
                days += self.rebuild_device(device_id, from, to).await?;
                looked_at += len;
            }
            let Some(next) = next else {
                return Ok(Rebuilt { days, next: None });
            };
            if looked_at >= days_max {
                let next = Some(Cursor::new(list, next));
                return Ok(Rebuilt { days, next });
            }
            start = Some(next);
        }
    }

    async fn rebuild_device(
        &self,
        device_id: &ScId,
        from: MountainDay,
        to: MountainDay,
    ) -> Result<usize, ChargersError> {
        let mut counted = 0;
        let mut day = from;
        while day <= to {
            let has_events = self.count_day(device_id, day, Replaces::AllCounts).await?;
            counted += usize::from(has_events);
            day = day.next();
        }
        Ok(counted)
    }

    /// Counts one day from the store if it has events.
    async fn count(
        &self,
        device_id: &ScId,
        day: MountainDay,
    ) -> Result<Option<DailyStats>, ChargersError> {
        let range = EventRange {
            from: Some(day.previous().start()),
            to: Some(EpochMillis(day.end().0 - 1)),
            order: Order::OldestFirst,
        };
        let timeline = Timeline::Device(device_id, None);
        let events = timeline::read(&*self.store, timeline, range, None, EVENTS_MAX, true).await?;
        if events.len() == EVENTS_MAX {
            tracing::warn!(%device_id, %day, EVENTS_MAX, "a day has too many events; some are not counted");
        }
        let start = day.start();
        let (before, events) =
            events.split_at(events.partition_point(|event| event.timestamp_utc < start));
        let has_events = !events.is_empty();
        Ok(has_events.then(|| DailyStats::count(day, before, events)))
    }

    /// The daily statistics of a device, oldest first; both ends are included.
    ///
    /// # Errors
    /// When the cursor belongs to another list or the store fails.
    pub async fn daily(
        &self,
        device_id: &ScId,
        from: Option<MountainDay>,
        to: Option<MountainDay>,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Page<Item>, ChargersError> {
        let text = |day: Option<MountainDay>, open: &str| {
            day.map_or_else(|| open.to_owned(), |day| day.to_string())
        };
        let (from, to) = (text(from, "0000-00-00"), text(to, "9999-99-99"));
        if from > to || self.is_removed(device_id).await? {
            return Ok(Page::default());
        }
        let list = format!("chargers/daily/{device_id}/{from}/{to}");
        let start = cursor.map(|cursor| cursor.start_of(&list)).transpose()?;
        let between = SortCondition::Between(Value::from(from), Value::from(to));
        let condition =
            KeyCondition::new(schema::DEVICE_ID, device_id).with_sort(schema::DATE, between);
        let query = Query::new(schema::DAILY_STATS, condition).starting_after(start);
        let limit = limit.clamp(1, PAGE_MAX);
        let schema = schema::daily_stats();
        Ok(pages::read_page(&*self.store, &schema, query, &list, limit).await?)
    }
}
