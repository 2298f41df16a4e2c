//! Compares a table at both endpoints.
//!
//! Both are read completely and digested in parts. If all digests match, the tables are equal.
//! Otherwise the items of the differing parts are compared one by one. Differing items are read
//! again after applying changes, because items that are being written differ only temporarily.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use homeport_item::Item;
use homeport_item::schema::TableSchema;
use homeport_store::StoreError;

use super::digest::{ContentHash, TableSum, key_of};
use super::{Move, MoveError, MoveEvent, Side, at};
use crate::connect::Remote;
use crate::convert::value::item;
use crate::expiry::Expiry;

/// Maximum number of times differing items are read again.
const REREADS_MAX: u32 = 6;
/// Initial delay between two reads, doubled each time. A change may take seconds to appear in an
/// Amazon stream.
const REREAD_DELAY_FIRST: Duration = Duration::from_millis(250);
/// Number of items between two progress events.
const PROGRESS_EVERY: u64 = 1000;
/// Number of concurrent single-item reads.
const READS_AT_ONCE: usize = 16;
/// Maximum number of items that are compared one by one.
const SUSPECTS_MAX: usize = 1_000_000;

/// The result of comparing a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableComparison {
    pub table: String,
    /// The number of unexpired items at each endpoint.
    pub source_items: u64,
    pub target_items: u64,
    /// The digests of the same items.
    pub source_hash: ContentHash,
    pub target_hash: ContentHash,
    /// Differing items that were being written, for which nothing is proven.
    pub in_motion: usize,
    /// Changes by requests at the source while items were read again.
    pub writes_seen: u64,
    /// The keys of differing items that nobody writes.
    pub different: Vec<String>,
}

/// Differing items by the digest of their key.
type Suspects = HashMap<ContentHash, Item>;

impl Move {
    /// Compares a table that follows the source.
    pub(super) async fn verify(&mut self, table: &str) -> Result<TableComparison, MoveError> {
        self.report(&MoveEvent::Comparing { table, items: 0 });
        let schema = self.source.table(table).await;
        let schema = schema.map_err(at(Side::Source, table))?;
        let now_secs = self.source.clock.now_secs();
        let report = |items| self.report(&MoveEvent::Comparing { table, items });
        let source = self.source.sum(&schema, now_secs, report);
        let target = self.target.sum(&schema, now_secs, |_| {});
        let (source, target) = tokio::join!(source, target);
        let source = source.map_err(at(Side::Source, table))?;
        let target = target.map_err(at(Side::Target, table))?;
        let mut verified = TableComparison {
            table: table.to_owned(),
            source_items: source.count(),
            target_items: target.count(),
            source_hash: source.hash(),
            target_hash: target.hash(),
            in_motion: 0,
            writes_seen: 0,
            different: Vec::new(),
        };
        let differing = source.differing(&target);
        if differing.contains(&true) {
            let suspects = self.suspects(&schema, &differing).await?;
            self.reread(&schema, suspects, &mut verified).await?;
        }
        self.report(&MoveEvent::Compared(&verified));
        Ok(verified)
    }

    /// The differing items of the differing parts.
    async fn suspects(
        &self,
        schema: &TableSchema,
        differing: &[bool],
    ) -> Result<Suspects, MoveError> {
        let table = &schema.name;
        let now_secs = self.source.clock.now_secs();
        let source = self.source.items_in(schema, now_secs, differing);
        let target = self.target.items_in(schema, now_secs, differing);
        let (source, target) = tokio::join!(source, target);
        let mut suspects = source.map_err(at(Side::Source, table))?;
        for (key, (hash, item)) in target.map_err(at(Side::Target, table))? {
            let is_equal = suspects.get(&key).is_some_and(|(other, _)| *other == hash);
            if is_equal {
                suspects.remove(&key);
            } else {
                suspects.insert(key, (hash, item));
            }
        }
        Ok(suspects
            .into_iter()
            .map(|(key, (_, item))| (key, item))
            .collect())
    }

    /// Reads items again until they are equal. An item is equal if the target's version matches the
    /// source's version before or after applying changes.
    async fn reread(
        &mut self,
        schema: &TableSchema,
        mut suspects: Suspects,
        verified: &mut TableComparison,
    ) -> Result<(), MoveError> {
        let table = schema.name.as_str();
        let watched: HashSet<ContentHash> = suspects.keys().copied().collect();
        let mut touched = HashSet::new();
        for attempt in 0..REREADS_MAX {
            if attempt > 0 {
                tokio::time::sleep(REREAD_DELAY_FIRST * 2_u32.pow(attempt - 1)).await;
            }
            let before = self.read_digests(Side::Source, schema, &suspects).await?;
            match self.catch_up(table, &watched).await? {
                Some(carried) => {
                    verified.writes_seen += carried.by_requests;
                    touched.extend(carried.touched);
                }
                // The table must be copied again, which the next run does.
                None => return Err(MoveError::Outrun(table.to_owned())),
            }
            let target = self.read_digests(Side::Target, schema, &suspects).await?;
            let after = self.read_digests(Side::Source, schema, &suspects).await?;
            suspects.retain(|key, _| {
                let found = target.get(key);
                found != before.get(key) && found != after.get(key)
            });
            if suspects.is_empty() {
                return Ok(());
            }
        }
        for (key, item) in suspects {
            if touched.contains(&key) {
                verified.in_motion += 1;
            } else {
                verified.different.push(describe_key(&item));
            }
        }
        verified.different.sort_unstable();
        Ok(())
    }

    /// The digests of the current items, without missing and expired ones.
    async fn read_digests(
        &self,
        side: Side,
        schema: &TableSchema,
        keys: &Suspects,
    ) -> Result<HashMap<ContentHash, ContentHash>, MoveError> {
        let place = match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        };
        let requests = keys.iter().map(|(key, key_item)| async move {
            let found = place.raw_item(&schema.name, key_item).await?;
            let found = found.map(item).transpose()?;
            let expiry = Expiry::of(schema, place.clock.now_secs());
            let visible =
                found.filter(|item| expiry.is_none_or(|expiry| !expiry.has_expired(item)));
            Ok(visible.map(|item| (*key, ContentHash::of(&item))))
        });
        // Collected first, because the closure's lifetime is too short for a stream that is sent
        // between threads.
        let requests: Vec<_> = requests.collect();
        let found: Result<Vec<_>, StoreError> = futures_util::stream::iter(requests)
            .buffer_unordered(READS_AT_ONCE)
            .try_filter_map(|found| async move { Ok(found) })
            .try_collect()
            .await;
        Ok(found.map_err(at(side, &schema.name))?.into_iter().collect())
    }
}

impl Remote {
    /// Digests the unexpired items of a table by the given schema.
    async fn sum(
        &self,
        schema: &TableSchema,
        now_secs: i64,
        report: impl Fn(u64),
    ) -> Result<TableSum, StoreError> {
        let mut sum = TableSum::new();
        let mut count = 0;
        self.each_item(schema, now_secs, |item| {
            sum.add(&schema.key, item);
            count += 1;
            if count % PROGRESS_EVERY == 0 {
                report(count);
            }
            Ok(())
        })
        .await?;
        Ok(sum)
    }

    /// The items of some parts: digest and key, by the digest of the key.
    async fn items_in(
        &self,
        schema: &TableSchema,
        now_secs: i64,
        parts: &[bool],
    ) -> Result<HashMap<ContentHash, (ContentHash, Item)>, StoreError> {
        let mut items = HashMap::new();
        self.each_item(schema, now_secs, |item| {
            let key_item = key_of(&schema.key, item);
            let key = ContentHash::of(&key_item);
            if parts.get(key.part()) == Some(&true) {
                items.insert(key, (ContentHash::of(item), key_item));
            }
            if items.len() > SUSPECTS_MAX {
                return Err(StoreError::invalid(
                    "too many items differ to compare them one by one",
                ));
            }
            Ok(())
        })
        .await?;
        Ok(items)
    }

    async fn each_item(
        &self,
        schema: &TableSchema,
        now_secs: i64,
        mut visit: impl FnMut(&Item) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let expiry = Expiry::of(schema, now_secs);
        let mut start = None;
        loop {
            let page = self.raw_page(&schema.name, start, None).await?;
            for found in page.items {
                let found = item(found)?;
                if expiry.is_none_or(|expiry| !expiry.has_expired(&found)) {
                    visit(&found)?;
                }
            }
            start = page.next;
            if start.is_none() {
                return Ok(());
            }
        }
    }
}

/// A readable form of a key.
fn describe_key(key: &Item) -> String {
    serde_json::to_string(key).unwrap_or_default()
}
