//! Comparing a table of both places.
//!
//! Both are read whole and summed up by parts. Where all sums are equal, so are the tables. Where not, the
//! items of the differing parts are compared one by one; those that differ are looked at again after
//! carrying changes over, since what is being written differs from moment to moment and settles.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use homeport_item::Item;
use homeport_item::schema::TableSchema;
use homeport_store::StoreError;

use super::digest::{ContentHash, TableSum, key_of};
use super::{Move, MoveError, MoveEvent, Side, at};
use crate::connect::Remote;
use crate::expiry::Expiry;
use crate::value::item;

/// How often items that differ are looked at again.
const LOOKS_MAX: u32 = 6;
/// The first pause between two looks; each is twice as long as the one before. A change may take seconds to
/// get into a stream of Amazon's.
const LOOK_PAUSE_FIRST: Duration = Duration::from_millis(250);
/// Items between two words about how far comparing has come.
const TELL_EVERY: u64 = 1000;
/// Items that are read one by one at the same time.
const LOOKS_AT_ONCE: usize = 16;
/// Items of differing parts that are compared one by one at most.
const SUSPECTS_MAX: usize = 1_000_000;

/// What comparing a table showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    pub table: String,
    /// The items that were there when each place was read, without those whose time had passed.
    pub source_items: u64,
    pub target_items: u64,
    /// The sums of the same items.
    pub source_hash: ContentHash,
    pub target_hash: ContentHash,
    /// Items that were found different and were being written at that time: nothing is proven of them.
    pub in_motion: usize,
    /// Changes that requests made to the source while items were looked at again.
    pub writes_seen: u64,
    /// The keys of items that differ though nothing writes them.
    pub different: Vec<String>,
}

/// Items that were found different, by the digest of their key.
type Suspects = HashMap<ContentHash, Item>;

impl Move {
    /// Compares a table that follows the source.
    pub(super) async fn verify(&mut self, table: &str) -> Result<Verified, MoveError> {
        self.tell(&MoveEvent::Comparing { table, items: 0 });
        let schema = self.source.table(table).await;
        let schema = schema.map_err(at(Side::Source, table))?;
        let now_secs = self.source.clock.now_secs();
        let tell = |items| self.tell(&MoveEvent::Comparing { table, items });
        let source = self.source.sum(&schema, now_secs, tell);
        let target = self.target.sum(&schema, now_secs, |_| {});
        let (source, target) = tokio::join!(source, target);
        let source = source.map_err(at(Side::Source, table))?;
        let target = target.map_err(at(Side::Target, table))?;
        let mut verified = Verified {
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
            self.look_again(&schema, suspects, &mut verified).await?;
        }
        self.tell(&MoveEvent::Compared(&verified));
        Ok(verified)
    }

    /// The items of differing parts that differ.
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

    /// Looks at items again until they are equal. An item is equal when the target has it as the source had
    /// it at either end of carrying changes over.
    async fn look_again(
        &mut self,
        schema: &TableSchema,
        mut suspects: Suspects,
        verified: &mut Verified,
    ) -> Result<(), MoveError> {
        let table = schema.name.as_str();
        let watched: HashSet<ContentHash> = suspects.keys().copied().collect();
        let mut touched = HashSet::new();
        for look in 0..LOOKS_MAX {
            if look > 0 {
                tokio::time::sleep(LOOK_PAUSE_FIRST * 2_u32.pow(look - 1)).await;
            }
            let before = self.look(Side::Source, schema, &suspects).await?;
            match self.catch_up(table, &watched).await? {
                Some(carried) => {
                    verified.writes_seen += carried.by_requests;
                    touched.extend(carried.touched);
                }
                // It is to be copied anew, which the next run does.
                None => return Err(MoveError::Outrun(table.to_owned())),
            }
            let target = self.look(Side::Target, schema, &suspects).await?;
            let after = self.look(Side::Source, schema, &suspects).await?;
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
                verified.different.push(shown(&item));
            }
        }
        verified.different.sort_unstable();
        Ok(())
    }

    /// The digests of items as they are now; none of those that are not there or whose time has passed.
    async fn look(
        &self,
        side: Side,
        schema: &TableSchema,
        keys: &Suspects,
    ) -> Result<HashMap<ContentHash, ContentHash>, MoveError> {
        let place = match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        };
        let looks = keys.iter().map(|(key, key_item)| async move {
            let found = place.raw_item(&schema.name, key_item).await?;
            let found = found.map(item).transpose()?;
            let expiry = Expiry::of(schema, place.clock.now_secs());
            let visible =
                found.filter(|item| expiry.is_none_or(|expiry| !expiry.has_expired(item)));
            Ok(visible.map(|item| (*key, ContentHash::of(&item))))
        });
        // Collected first: the closure's lifetime is too narrow for a stream that is sent between threads.
        let looks: Vec<_> = looks.collect();
        let found: Result<Vec<_>, StoreError> = futures_util::stream::iter(looks)
            .buffer_unordered(LOOKS_AT_ONCE)
            .try_filter_map(|found| async move { Ok(found) })
            .try_collect()
            .await;
        Ok(found.map_err(at(side, &schema.name))?.into_iter().collect())
    }
}

impl Remote {
    /// Sums up a table as another's schema has it, without what has expired.
    async fn sum(
        &self,
        schema: &TableSchema,
        now_secs: i64,
        tell: impl Fn(u64),
    ) -> Result<TableSum, StoreError> {
        let mut sum = TableSum::new();
        let mut count = 0;
        self.each_item(schema, now_secs, |item| {
            sum.add(&schema.key, item);
            count += 1;
            if count % TELL_EVERY == 0 {
                tell(count);
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
                return Err(StoreError::Invalid(
                    "it differs in too many items to compare them one by one".to_owned(),
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
        mut look: impl FnMut(&Item) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let expiry = Expiry::of(schema, now_secs);
        let mut start = None;
        loop {
            let page = self.raw_page(&schema.name, start, None).await?;
            for found in page.items {
                let found = item(found)?;
                if expiry.is_none_or(|expiry| !expiry.has_expired(&found)) {
                    look(&found)?;
                }
            }
            start = page.next;
            if start.is_none() {
                return Ok(());
            }
        }
    }
}

/// A key for people to read.
fn shown(key: &Item) -> String {
    serde_json::to_string(key).unwrap_or_default()
}
