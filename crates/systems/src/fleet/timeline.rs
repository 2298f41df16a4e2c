//! The timeline of a device: everything that happened to it, from several tables, in one order.
//!
//! A page merges the next entries of each source. A source that had to read too many items for a page says how
//! far it was read, and the page ends there: the next page starts at that moment.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use homeport_item::expression::{KeyCondition, Path};
use homeport_item::{Item, Value};
use homeport_store::Query;

use super::attributes::text;
use super::entry::{Entry, EntryType};
use super::history::{Detail, HistoryRange, Row, RowReader};
use super::name::DeviceRef;
use super::source::DeviceSource;
use super::{Fleet, FleetError, alert_entries};
use crate::alerts;
use crate::cursor::{Cursor, CursorError};
use crate::pages::Page;
use crate::time::{EpochMillis, Order};

/// Entries of one page.
pub const TIMELINE_MAX: usize = 500;
/// Items that one source reads for a page. With a filter, most of them may not match.
const LOOKED_AT_MAX: usize = 5000;
const LOOK_MIN: usize = 64;
/// Alerts that are searched, newest first.
const ALERTS_LOOKED_AT_MAX: usize = 5000;
/// Alerts of a device whose notifications are read.
const ALERTS_TOLD_MAX: usize = 100;
/// Histories of a device that are merged.
const HISTORIES_MAX: usize = 50;

const AT: &str = "at";
const ID: &str = "id";

/// Which entries are wanted; both ends are included.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TimelineRange {
    pub from: Option<EpochMillis>,
    pub to: Option<EpochMillis>,
    /// Empty for all types.
    pub types: BTreeSet<EntryType>,
    pub order: Order,
}

/// The position of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    at: EpochMillis,
    id: String,
}

/// One page of a timeline, as its sources are asked for it.
struct Asked<'a> {
    range: &'a TimelineRange,
    from: EpochMillis,
    to: EpochMillis,
    after: Option<Place>,
    /// Entries that one source returns at most: one more than the page has.
    wanted: usize,
}

/// The entries of one source.
#[derive(Default)]
struct Found {
    entries: Vec<Entry>,
    /// How far the source was read, when there may be more entries after that.
    looked_to: Option<EpochMillis>,
}

impl Fleet {
    /// What happened to a device.
    ///
    /// # Errors
    /// When there is no such device, the cursor belongs to another timeline, or the store fails.
    pub async fn timeline(
        &self,
        device: &DeviceRef,
        range: &TimelineRange,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Page<Entry>, FleetError> {
        let limit = limit.clamp(1, TIMELINE_MAX);
        let list = format!("timeline/{device:?}/{range:?}");
        let after = cursor.map(|cursor| place_in(&cursor.start_of(&list)?));
        let after = after.transpose()?;
        let mut asked = Asked {
            from: range.from.unwrap_or(EpochMillis(0)),
            to: range.to.unwrap_or(EpochMillis(i64::MAX)),
            range,
            after,
            wanted: limit + 1,
        };
        // Nothing before the cursor is needed.
        if let Some(after) = &asked.after {
            match range.order {
                Order::OldestFirst => asked.from = asked.from.max(after.at),
                Order::NewestFirst => asked.to = asked.to.min(after.at),
            }
        }
        if asked.from > asked.to {
            return Ok(Page::default());
        }
        let sources = self.sources(device, &asked).await?;
        Ok(merge(sources, &asked, limit, &list))
    }

    async fn sources(
        &self,
        device: &DeviceRef,
        asked: &Asked<'_>,
    ) -> Result<Vec<Found>, FleetError> {
        let source = &**self.source(&device.system)?;
        let id = source.resolve_id(&device.id).await?;
        let mut found = Vec::new();
        if asked.may_have(source.entry_types()) {
            let range = HistoryRange::new(asked.from, asked.to, asked.range.order, Detail::Shown);
            let histories = source.history(&id, &range).await?;
            for mut history in histories.into_iter().take(HISTORIES_MAX) {
                found.push(read_history(source, &id, &mut *history, asked).await?);
            }
        }
        if source.system().alert_reaction.is_some() {
            found.push(self.alerts(source, &id, asked).await?);
        }
        Ok(found)
    }

    /// The alerts of a device and their notifications. Alerts are few, and one alert is several entries, so all
    /// of them are read into memory.
    async fn alerts(
        &self,
        source: &dyn DeviceSource,
        id: &str,
        asked: &Asked<'_>,
    ) -> Result<Found, FleetError> {
        use alerts::schema;
        let mut found = Found::default();
        if !asked.may_have(&[EntryType::Alert, EntryType::Notification]) {
            return Ok(found);
        }
        let of_system = Path::from(schema::SOURCE).equals(source.system().name.as_str());
        // A subject can be a part of the device.
        let of_device = Path::from(schema::DEVICE).begins_with(Value::from(id));
        let condition = KeyCondition::new(schema::ALL, schema::ALERTS_SHELF);
        let mut query = Query::new(schema::ALERTS, condition)
            .on_index(schema::ALL_INDEX)
            .filter(of_system.and(of_device))
            .descending();
        let (mut looked_at, mut told) = (0, 0);
        loop {
            let page = self.store().query(query.clone()).await?;
            looked_at += page.scanned;
            for item in &page.items {
                let subject = text(item, schema::DEVICE).unwrap_or_default();
                if source.device_of_subject(subject) != id {
                    continue;
                }
                let entries = alert_entries::steps(item).into_iter();
                found
                    .entries
                    .extend(entries.filter(|entry| asked.wants(entry)));
                if told < ALERTS_TOLD_MAX && asked.may_have(&[EntryType::Notification]) {
                    told += 1;
                    self.told(item, asked, &mut found).await?;
                }
            }
            query.start = page.next;
            if query.start.is_none() || looked_at >= ALERTS_LOOKED_AT_MAX {
                return Ok(found);
            }
        }
    }

    async fn told(
        &self,
        alert: &Item,
        asked: &Asked<'_>,
        found: &mut Found,
    ) -> Result<(), FleetError> {
        use alerts::schema;
        let Some(id) = alert.get(schema::ALERT_ID) else {
            return Ok(());
        };
        let condition = KeyCondition::new(schema::ALERT_ID, id.clone());
        let page = self
            .store()
            .query(Query::new(schema::OUTBOX, condition))
            .await?;
        let entries = page.items.iter().filter_map(alert_entries::notified);
        found
            .entries
            .extend(entries.filter(|entry| asked.wants(entry)));
        Ok(())
    }
}

impl Asked<'_> {
    /// Whether any of these types is wanted.
    fn may_have(&self, types: &[EntryType]) -> bool {
        let wanted = &self.range.types;
        wanted.is_empty() || types.iter().any(|kind| wanted.contains(kind))
    }

    /// Whether an entry matches and comes after the cursor.
    fn wants(&self, entry: &Entry) -> bool {
        self.may_have(&[entry.kind])
            && (self.from..=self.to).contains(&entry.at)
            && self.after.as_ref().is_none_or(|after| {
                self.compare((entry.at, &entry.id), (after.at, &after.id)) == Ordering::Greater
            })
    }

    /// In the order of this timeline.
    fn compare(&self, left: (EpochMillis, &str), right: (EpochMillis, &str)) -> Ordering {
        match self.range.order {
            Order::OldestFirst => left.cmp(&right),
            Order::NewestFirst => right.cmp(&left),
        }
    }
}

/// Reads the entries of one history.
async fn read_history(
    source: &dyn DeviceSource,
    id: &str,
    reader: &mut dyn RowReader,
    asked: &Asked<'_>,
) -> Result<Found, FleetError> {
    let mut found = Found::default();
    let (mut looked_at, mut reached) = (0, None);
    while found.entries.len() < asked.wanted {
        let look = (asked.wanted - found.entries.len()).max(LOOK_MIN);
        let Some(page) = reader.next_page(Some(look)).await? else {
            return Ok(found);
        };
        looked_at += page.items_read.max(1);
        reached = page.reached.or(reached);
        // A partition can have rows of several devices.
        let is_its = |row: &&Row| {
            source
                .devices_of(&row.item)
                .iter()
                .any(|device| device == id)
        };
        let rows = page.rows.iter().filter(is_its);
        let entries = rows.filter_map(|row| source.entry(row));
        found
            .entries
            .extend(entries.filter(|entry| asked.wants(entry)));
        if looked_at >= LOOKED_AT_MAX && reached.is_some() {
            found.looked_to = reached;
            break;
        }
    }
    Ok(found)
}

fn merge(sources: Vec<Found>, asked: &Asked<'_>, limit: usize, list: &str) -> Page<Entry> {
    let order = asked.range.order;
    let bounds = sources.iter().filter_map(|source| source.looked_to);
    let bound = match order {
        Order::OldestFirst => bounds.min(),
        Order::NewestFirst => bounds.max(),
    };
    let mut entries: Vec<Entry> = sources
        .into_iter()
        .flat_map(|found| found.entries)
        .collect();
    entries.sort_by(|left, right| asked.compare((left.at, &left.id), (right.at, &right.id)));
    if let Some(bound) = bound {
        // At the bound itself a source may have more entries.
        entries.retain(|entry| match order {
            Order::OldestFirst => entry.at < bound,
            Order::NewestFirst => entry.at > bound,
        });
    }
    let next = if entries.len() > limit {
        entries.truncate(limit);
        let last = entries.last();
        last.map(|last| Cursor::new(list, place(last.at, &last.id)))
    } else {
        bound.map(|bound| {
            // Before all entries of that moment.
            let id = match order {
                Order::OldestFirst => "",
                Order::NewestFirst => "\u{10ffff}",
            };
            Cursor::new(list, place(bound, id))
        })
    };
    Page {
        items: entries,
        next,
    }
}

fn place(at: EpochMillis, id: &str) -> Item {
    Item::new().with(AT, at.0).with(ID, id)
}

fn place_in(item: &Item) -> Result<Place, CursorError> {
    let at = item.get(AT).and_then(Value::as_number);
    let id = item.get(ID).and_then(Value::as_str);
    Ok(Place {
        at: EpochMillis(at.and_then(|at| at.to_i64()).ok_or(CursorError)?),
        id: id.ok_or(CursorError)?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(at: i64, id: &str) -> Entry {
        Entry {
            id: id.to_owned(),
            at: EpochMillis(at),
            kind: EntryType::Telemetry,
            title: String::new(),
            table: String::new(),
            item: Item::new(),
        }
    }

    fn found(times: &[i64], looked_to: Option<i64>) -> Found {
        Found {
            entries: times.iter().map(|at| entry(*at, &at.to_string())).collect(),
            looked_to: looked_to.map(EpochMillis),
        }
    }

    fn merged(order: Order, sources: Vec<Found>, limit: usize) -> (Vec<i64>, Option<i64>) {
        let range = TimelineRange {
            order,
            ..TimelineRange::default()
        };
        let asked = Asked {
            range: &range,
            from: EpochMillis(0),
            to: EpochMillis(i64::MAX),
            after: None,
            wanted: limit + 1,
        };
        let page = merge(sources, &asked, limit, "list");
        let next = page.next.map(|cursor| {
            let place = place_in(&cursor.start_of("list").expect("its list"));
            place.expect("a place").at.0
        });
        (page.items.iter().map(|entry| entry.at.0).collect(), next)
    }

    #[test]
    fn sources_are_merged_and_cut_at_the_limit() {
        let sources = || vec![found(&[9, 5, 1], None), found(&[8, 7, 2], None)];
        let newest = Order::NewestFirst;
        assert_eq!(merged(newest, sources(), 4), (vec![9, 8, 7, 5], Some(5)));
        assert_eq!(merged(newest, sources(), 6), (vec![9, 8, 7, 5, 2, 1], None));
        let oldest = Order::OldestFirst;
        assert_eq!(merged(oldest, sources(), 2), (vec![1, 2], Some(2)));
    }

    #[test]
    fn page_ends_where_a_source_was_not_read() {
        // The second source was read down to 6 only: its entries at 6 and below are unknown.
        let sources = || vec![found(&[9, 6, 5, 1], None), found(&[8], Some(6))];
        let newest = Order::NewestFirst;
        assert_eq!(merged(newest, sources(), 10), (vec![9, 8], Some(6)));
        // A page may be empty without being the last.
        let nothing = vec![found(&[], Some(6)), found(&[3], None)];
        assert_eq!(merged(newest, nothing, 10), (vec![], Some(6)));
        let oldest = Order::OldestFirst;
        let sources = vec![found(&[1, 5, 6, 9], None), found(&[4], Some(6))];
        assert_eq!(merged(oldest, sources, 10), (vec![1, 4, 5], Some(6)));
    }
}
