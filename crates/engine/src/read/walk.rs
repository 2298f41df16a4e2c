//! Walks over a range of stored keys until it ends or the page is full.

use homeport_item::binary::DecodeError;
use homeport_item::expression::Condition;
use homeport_item::schema::IndexProjection;
use homeport_store::{PAGE_SIZE_MAX_BYTES, StoreError};

use super::StoredPage;
use super::range::KeyRange;
use super::source::ReadSource;
use crate::error::unavailable;
use crate::shared::Shared;
use crate::storage::layout;
use crate::storage::record::Record;
use crate::storage::vault::{Guard, UserKey};

/// A query or scan of one page.
pub(super) struct Walk<'a> {
    pub(super) source: ReadSource<'a>,
    pub(super) range: KeyRange,
    pub(super) descending: bool,
    pub(super) filter: Option<&'a Condition>,
    pub(super) limit: Option<usize>,
    pub(super) count_only: bool,
    /// Return the full items instead of the attributes that the index carries.
    pub(super) needs_items: bool,
}

struct EntryVerdict {
    size: usize,
    expired: bool,
    matches: bool,
}

impl Walk<'_> {
    fn examine(
        &self,
        key: &[u8],
        value: &[u8],
        now_secs: i64,
    ) -> Result<EntryVerdict, DecodeError> {
        let record = self.source.record(key, value)?;
        let expired = self.is_expired(&record, now_secs)?;
        let matches = match self.filter {
            _ if expired => false,
            Some(filter) => filter.matches(&record)?,
            None => true,
        };
        Ok(EntryVerdict {
            size: record.size(),
            expired,
            matches,
        })
    }

    /// Whether entries may lack the expiry of their items: a TTL attribute was just set, and the entries of
    /// an index that does not carry it are still being rewritten.
    fn may_hide_expiry(&self) -> bool {
        match &self.source {
            ReadSource::Table(_) => false,
            ReadSource::Index(table, index) => {
                table.record.expiry_job.is_some() && index.schema.projection != IndexProjection::All
            }
        }
    }

    /// The key of the item that an entry belongs to.
    fn item_key(&self, key: &[u8], value: &[u8]) -> Result<UserKey, DecodeError> {
        let (partition, sort) = self.source.record(key, value)?.key_values()?;
        Ok(layout::item_key(&partition, sort.as_ref()))
    }

    fn is_expired(&self, record: &Record<'_>, now_secs: i64) -> Result<bool, DecodeError> {
        self.source.table().is_expired(record, now_secs)
    }
}

impl Shared {
    /// Reads a range until it ends or the page is full.
    pub(super) fn walk(&self, walk: &Walk<'_>) -> Result<StoredPage, StoreError> {
        if walk.limit == Some(0) {
            return Err(StoreError::invalid("a limit must be at least 1"));
        }
        let mut page = StoredPage::default();
        if walk.range.is_empty() {
            return Ok(page);
        }
        let now_secs = self.now_secs();
        let bounds = (walk.range.lower.clone(), walk.range.upper.clone());
        let snapshot = self.database.snapshot();
        let mut entries = snapshot.range(walk.source.keyspace(), bounds);
        // Expired items count towards the page's size, so that many of them cannot keep one call busy for
        // long, but towards nothing that the caller sees.
        let mut page_bytes = 0;
        loop {
            let guard: Option<Guard<'_>> = if walk.descending {
                entries.next_back()
            } else {
                entries.next()
            };
            let Some(guard) = guard else {
                return Ok(page);
            };
            let (key, value) = guard.into_inner().map_err(unavailable)?;
            let mut verdict = walk.examine(&key, &value, now_secs).map_err(unavailable)?;
            if !verdict.expired && walk.may_hide_expiry() {
                let item_key = walk.item_key(&key, &value).map_err(unavailable)?;
                let item = self.get_at(&snapshot, walk.source.table(), item_key)?;
                verdict.expired = item.is_none();
                verdict.matches &= item.is_some();
            }
            page_bytes += verdict.size;
            if !verdict.expired {
                page.scanned += 1;
                page.scanned_bytes += verdict.size;
            }
            let is_full = walk.limit.is_some_and(|limit| page.scanned >= limit)
                || page_bytes >= PAGE_SIZE_MAX_BYTES;
            if is_full {
                page.next = Some(
                    walk.source
                        .page_key(&key)
                        .ok_or_else(|| unavailable("a stored key is damaged"))?,
                );
            }
            page.count += usize::from(verdict.matches);
            if walk.needs_items && !verdict.expired {
                let item_key = walk.item_key(&key, &value).map_err(unavailable)?;
                if let Some(item) = self.get_at(&snapshot, walk.source.table(), item_key)? {
                    page.fetched_sizes
                        .push(item.record().map_err(unavailable)?.size());
                    if verdict.matches {
                        page.items.push(item);
                    }
                }
            } else if verdict.matches && !walk.count_only {
                page.items.push(walk.source.stored(key, value));
            }
            if is_full {
                return Ok(page);
            }
        }
    }
}
