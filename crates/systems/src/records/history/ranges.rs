//! Records in a range of time, of one journal or of all journals of a device.

use homeport_item::Item;
use homeport_item::expression::{KeyCondition, SortCondition};
use homeport_store::Query;

use super::record::Record;
use crate::cursor::{Cursor, CursorError};
use crate::pages::{self, Page};
use crate::records::types::{DeviceId, GroupId, JournalId, RecordTime};
use crate::records::{PAGE_MAX, Records, RecordsError, schema, stored, visible};
use crate::time::Order;

/// Journals of a device that are read at once.
const JOURNALS_PER_READ: usize = 100;

/// Which records are wanted; both ends are included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordRange {
    pub from: RecordTime,
    pub to: RecordTime,
    pub order: Order,
}

impl Default for RecordRange {
    fn default() -> Self {
        Self {
            from: RecordTime::FIRST,
            to: RecordTime::LAST,
            order: Order::default(),
        }
    }
}

impl Records {
    /// Records of a device in a range of time: of one journal, or journal by journal.
    ///
    /// # Errors
    /// When there is no such group, device or journal, the cursor belongs to another list, or the store fails.
    pub async fn records(
        &self,
        group: GroupId,
        device: DeviceId,
        journal: Option<JournalId>,
        range: RecordRange,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Page<Record>, RecordsError> {
        let whose = journal.map_or_else(|| "all".to_owned(), |journal| journal.to_string());
        let list = format!(
            "records/{group}/{device}/{whose}/{}/{}/{:?}",
            range.from, range.to, range.order
        );
        let limit = limit.clamp(1, PAGE_MAX);
        let mut start = cursor.map(|cursor| cursor.start_of(&list)).transpose()?;
        let mut items = Vec::new();
        let mut journals = match journal {
            Some(journal) => vec![journal],
            None => self.journals_from(group, device, start.as_ref()).await?,
        };
        // One more record than requested shows whether this is the last page.
        while !journals.is_empty() && range.from <= range.to && items.len() <= limit {
            for journal in &journals {
                let mut query = self.query_range(group, device, *journal, range);
                query.start = start.take();
                let schema = schema::table(self.table());
                let wanted = limit + 1 - items.len();
                let page = pages::read_page(&*self.store, &schema, query, &list, wanted).await?;
                items.extend(page.items);
                if items.len() > limit {
                    break;
                }
            }
            let is_last = journal.is_some() || journals.len() < JOURNALS_PER_READ;
            journals = match journals.last() {
                Some(last) if !is_last => self.journals_after(group, device, *last).await?,
                _ => Vec::new(),
            };
        }
        let is_cut = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| is_cut).map(|last| {
            let sort = stored::sort_key(last);
            Cursor::new(list, schema::key_in(group, sort))
        });
        let parents = visible::its_device_and_journal;
        let items = self.visible_of(group, items, parents).await?;
        match journal {
            Some(journal) => self.journal(group, device, journal).await.map(drop)?,
            None => self.device(group, device).await.map(drop)?,
        }
        let page = Page { items, next };
        Ok(page.readable(&schema::table(self.table()), |item| {
            Record::from_item(group, item)
        }))
    }

    fn query_range(
        &self,
        group: GroupId,
        device: DeviceId,
        journal: JournalId,
        range: RecordRange,
    ) -> Query {
        let between = SortCondition::Between(
            schema::record_sort(device, journal, range.from).into(),
            schema::record_sort(device, journal, range.to).into(),
        );
        let condition =
            KeyCondition::new(schema::PK, group.to_string()).with_sort(schema::SK, between);
        Query {
            consistent: true,
            descending: range.order == Order::NewestFirst,
            ..Query::new(self.table(), condition)
        }
    }

    /// Journals of a device, starting at the journal of a cursor.
    async fn journals_from(
        &self,
        group: GroupId,
        device: DeviceId,
        start: Option<&Item>,
    ) -> Result<Vec<JournalId>, RecordsError> {
        let Some(start) = start else {
            return self.read_journals(group, device, None).await;
        };
        let (_, journal) = stored::journal_ids(start).map_err(|_| CursorError)?;
        let mut journals = vec![journal];
        journals.extend(self.journals_after(group, device, journal).await?);
        Ok(journals)
    }

    async fn journals_after(
        &self,
        group: GroupId,
        device: DeviceId,
        journal: JournalId,
    ) -> Result<Vec<JournalId>, RecordsError> {
        let after = schema::key_in(group, schema::journal_sort(device, journal));
        self.read_journals(group, device, Some(after)).await
    }

    async fn read_journals(
        &self,
        group: GroupId,
        device: DeviceId,
        after: Option<Item>,
    ) -> Result<Vec<JournalId>, RecordsError> {
        let prefix = schema::of_device(schema::JOURNAL, device);
        let query = self
            .query_prefix(group.to_string(), prefix)
            .starting_after(after);
        let schema = schema::table(self.table());
        let page = pages::read_page(&*self.store, &schema, query, "", JOURNALS_PER_READ).await?;
        let ids = page.items.iter().map(stored::journal_ids);
        ids.map(|ids| ids.map(|(_, journal)| journal)).collect()
    }
}
