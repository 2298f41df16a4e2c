//! The key-value store alone. It writes the same bytes as the engine with the same syncs, without any checks: the upper limit
//! of the engine.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fjall::compaction::Leveled;
use fjall::config::{BlockSizePolicy, CompressionPolicy, FilterPolicy};
use fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode,
    Readable, Slice,
};
use homeport_item::{Item, Value, binary, key};
use xxhash_rust::xxh3::xxh3_64;

use crate::contestant::Contestant;
use crate::group_commit::GroupCommit;
use crate::workload::{DEVICE_COUNT, Reading, hardware_id};

// The engine's settings, which its crate does not export.
const CACHE_BYTES: u64 = 48 * 1024 * 1024;
const WRITE_BUFFER_BYTES: u64 = 64 * 1024 * 1024;
const JOURNAL_BYTES_MAX: u64 = 128 * 1024 * 1024;
const WORKERS: usize = 4;
const MEMTABLE_BYTES: u64 = 16 * 1024 * 1024;
const EXPIRY_MEMTABLE_BYTES: u64 = 8 * 1024 * 1024;
const FLUSHED_FILES: u8 = 8;
const FILE_BYTES: u64 = 8 * 1024 * 1024;
const BLOCK_BYTES: u32 = 4 * 1024;
const EXPIRY_BLOCK_BYTES: u32 = 16 * 1024;
const EXPIRY_WINDOW_SECS: i64 = 3600;
const PAGE_ITEMS_MAX: usize = 256;
// The engine numbers tables in order of creation.
const READINGS_ID: u32 = 2;
const BATCHES_ID: u32 = 3;
const COMMIT_KEY: &[u8] = b"homeport.commit";

#[derive(Clone)]
pub(crate) struct RawSide {
    keyspaces: Keyspaces,
    writer: GroupCommit<RawTransaction>,
}

#[derive(Clone)]
struct Keyspaces {
    database: Database,
    devices: Keyspace,
    device_index: Keyspace,
    readings: Keyspace,
    batches: Keyspace,
    expiry_pages: Keyspace,
    meta: Keyspace,
}

/// The entries of one transaction.
pub(crate) struct RawTransaction {
    marker: (Slice, Slice),
    marker_window: i64,
    reading: (Slice, Slice),
    reading_window: i64,
    device: (Slice, Slice),
    old_index_key: Slice,
    new_index_key: Slice,
}

impl RawSide {
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let database = Database::builder(path)
            .cache_size(CACHE_BYTES)
            .max_journaling_size(JOURNAL_BYTES_MAX)
            .worker_threads(WORKERS)
            .manual_journal_persist(true)
            .open()?;
        let open = |name| database.keyspace(name, options);
        let keyspaces = Keyspaces {
            devices: open("t1")?,
            device_index: open("t1i0")?,
            readings: open("t2")?,
            batches: open("t3")?,
            expiry_pages: database.keyspace("expiry-pages", expiry_options)?,
            meta: open("meta")?,
            database: database.clone(),
        };
        let owned = keyspaces.clone();
        let mut commit = 0;
        let writer = GroupCommit::start("raw-commit", move |group| {
            commit += 1;
            owned.commit(commit, group);
        });
        Ok(Self { keyspaces, writer })
    }
}

fn options() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .compaction_strategy(Arc::new(
            Leveled::default()
                .with_l0_threshold(FLUSHED_FILES)
                .with_table_target_size(FILE_BYTES),
        ))
        .manual_journal_persist(true)
        .max_memtable_size(MEMTABLE_BYTES)
        .data_block_size_policy(BlockSizePolicy::all(BLOCK_BYTES))
        .data_block_compression_policy(CompressionPolicy::new([
            CompressionType::None,
            CompressionType::Lz4,
        ]))
}

fn expiry_options() -> KeyspaceCreateOptions {
    options()
        .filter_policy(FilterPolicy::disabled())
        .max_memtable_size(EXPIRY_MEMTABLE_BYTES)
        .data_block_size_policy(BlockSizePolicy::all(EXPIRY_BLOCK_BYTES))
}

impl Keyspaces {
    fn commit(&self, commit: u64, group: Vec<RawTransaction>) {
        while self.database.write_buffer_size() > WRITE_BUFFER_BYTES {
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut batch = OwnedWriteBatch::with_capacity(self.database.clone(), group.len() * 7 + 1);
        let mut pages = Pages::default();
        for transaction in group {
            let (key, value) = transaction.marker;
            pages.add(transaction.marker_window, BATCHES_ID, &key);
            batch.insert(&self.batches, key, value);
            let (key, value) = transaction.reading;
            pages.add(transaction.reading_window, READINGS_ID, &key);
            batch.insert(&self.readings, key, value);
            batch.remove(&self.device_index, transaction.old_index_key);
            let (key, value) = transaction.device;
            batch.insert(&self.device_index, transaction.new_index_key, value.clone());
            batch.insert(&self.devices, key, value);
        }
        for (key, value) in pages.into_entries(commit) {
            batch.insert(&self.expiry_pages, key, value);
        }
        let mut record = [0; 24];
        record[..8].copy_from_slice(&commit.to_be_bytes());
        record[8..16].copy_from_slice(&(commit - 1).to_be_bytes());
        batch.insert(&self.meta, COMMIT_KEY, record.as_slice());
        batch
            .durability(Some(PersistMode::SyncData))
            .commit()
            .expect("the disk takes a write");
    }
}

impl Contestant for RawSide {
    type Request = RawTransaction;

    fn request(&self, reading: Reading) -> RawTransaction {
        let marker_key = item_key(&[&reading.batch_id()]);
        let reading_key = reading_key(reading);
        let device_key = item_key(&[&reading.hardware_id()]);
        let old_seen = reading.before().last_seen_at();
        RawTransaction {
            marker_window: window(reading.marker_expires_at_secs()),
            marker: (marker_key, stored(&reading.marker(), &["batch_id"])),
            reading_window: window(reading.expires_at_secs()),
            reading: (
                reading_key,
                stored(&reading.item(), &["hardware_id", "ts_batch"]),
            ),
            old_index_key: index_key(&old_seen, &device_key),
            new_index_key: index_key(&reading.last_seen_at(), &device_key),
            device: (device_key, stored(&reading.device_item(), &["hardware_id"])),
        }
    }

    async fn register(&self) {
        for device in 0..DEVICE_COUNT {
            let reading = Reading { device, step: 0 };
            let key = item_key(&[&reading.hardware_id()]);
            let value = stored(&reading.device_item(), &["hardware_id"]);
            let index_key = index_key(&reading.last_seen_at(), &key);
            let written = self
                .keyspaces
                .devices
                .insert(key, value.clone())
                .and_then(|()| self.keyspaces.device_index.insert(index_key, value));
            written.expect("the disk takes a write");
        }
    }

    async fn write(&self, requests: Vec<RawTransaction>) {
        self.writer.write(requests).await;
    }

    async fn get(&self, _caller: usize, reading: Reading, _decoded: bool) -> bool {
        let key = reading_key(reading);
        let found = self
            .keyspaces
            .database
            .snapshot()
            .get(&self.keyspaces.readings, key);
        found.expect("a get works").is_some()
    }

    async fn newest(&self, _caller: usize, device: u32, count: usize, _decoded: bool) -> usize {
        let prefix = prefix(&[&hardware_id(device)]);
        let entries = self
            .keyspaces
            .database
            .snapshot()
            .range(&self.keyspaces.readings, prefix.clone()..end_of(&prefix));
        collect(entries.rev(), count)
    }

    async fn range(&self, _caller: usize, first: Reading, count: usize, _decoded: bool) -> usize {
        let prefix = prefix(&[&first.hardware_id()]);
        let entries = self.keyspaces.database.snapshot().range(
            &self.keyspaces.readings,
            reading_key(first).to_vec()..end_of(&prefix),
        );
        collect(entries, count)
    }
}

/// Reads keys and values into memory, as for a response.
fn collect(entries: impl Iterator<Item = fjall::Guard>, count: usize) -> usize {
    let found: Vec<_> = entries
        .take(count)
        .map(|guard| guard.into_inner().expect("a range works"))
        .collect();
    std::hint::black_box(&found).len()
}

fn prefix(values: &[&str]) -> Vec<u8> {
    let mut bytes = vec![0];
    for (at, value) in values.iter().enumerate() {
        let is_key = key::encode(&Value::from(*value), &mut bytes);
        debug_assert!(is_key, "strings are keys");
        if at == 0 {
            bytes[0] = xxh3_64(&bytes[1..]).to_be_bytes()[0];
        }
    }
    bytes
}

fn item_key(values: &[&str]) -> Slice {
    prefix(values).into()
}

fn reading_key(reading: Reading) -> Slice {
    item_key(&[&reading.hardware_id(), &reading.ts_batch()])
}

fn index_key(last_seen_at: &str, device_key: &[u8]) -> Slice {
    let mut bytes = prefix(&["devices", last_seen_at]);
    bytes.extend_from_slice(&device_key[1..]);
    bytes.into()
}

fn window(expires_at_secs: i64) -> i64 {
    expires_at_secs - expires_at_secs % EXPIRY_WINDOW_SECS
}

/// The expiry entries that the engine writes for a group.
#[derive(Default)]
struct Pages {
    open: HashMap<(i64, u32), Page>,
    full: Vec<(i64, Page)>,
}

#[derive(Default)]
struct Page {
    value: Vec<u8>,
    items: usize,
    last: Vec<u8>,
}

impl Pages {
    fn add(&mut self, window: i64, table: u32, item_key: &[u8]) {
        let page = self.open.entry((window, table)).or_default();
        if page.items == PAGE_ITEMS_MAX {
            self.full.push((window, std::mem::take(page)));
        }
        if page.items == 0 {
            page.value.push(1);
            page.value.extend_from_slice(&table.to_be_bytes());
        }
        let name = [&item_key[1..], &item_key[..1]].concat();
        let pairs = name.iter().zip(&page.last);
        let shared = pairs.take_while(|(byte, last)| byte == last).count();
        for len in [shared, name.len() - shared] {
            let len = u16::try_from(len).expect("keys are short");
            page.value.extend_from_slice(&len.to_be_bytes());
        }
        page.value.extend_from_slice(&name[shared..]);
        page.items += 1;
        page.last = name;
    }

    fn into_entries(self, commit: u64) -> impl Iterator<Item = (Slice, Slice)> {
        let open = self.open.into_iter();
        let open = open.map(|((window, _), page)| (window, page));
        let pages = (0_u32..).zip(self.full.into_iter().chain(open));
        pages.map(move |(part, (window, page))| {
            let mut key = window.to_be_bytes().to_vec();
            key.extend_from_slice(&commit.to_be_bytes());
            key.extend_from_slice(&part.to_be_bytes());
            (key.into(), page.value.into())
        })
    }
}

/// The end of the range of this prefix; its last byte, a string's terminator, is not 255.
fn end_of(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}

/// An item as the engine stores it: its size, and its attributes without those of the key.
fn stored(item: &Item, keys: &[&str]) -> Slice {
    let mut bytes = Vec::with_capacity(item.size() + 16);
    let mut size = item.size();
    while size >= 0x80 {
        bytes.push(u8::try_from(size & 0x7F).expect("seven bits") | 0x80);
        size >>= 7;
    }
    bytes.push(u8::try_from(size).expect("seven bits"));
    let kept = item.iter().filter(|(name, _)| !keys.contains(name));
    binary::encode_item(kept, &mut bytes);
    bytes.into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::engine_side::EngineSide;
    use crate::stream::Stream;

    type Content = Vec<(Slice, Slice)>;

    fn content(path: &Path, name: &str) -> Content {
        let database = Database::builder(path).open().unwrap();
        let keyspace = database.keyspace(name, options).unwrap();
        keyspace
            .iter()
            .map(|guard| guard.into_inner().unwrap())
            .collect()
    }

    #[test]
    fn the_raw_side_writes_what_the_engine_writes() {
        let directory = tempfile::tempdir().unwrap();
        let (ours, raw) = (directory.path().join("ours"), directory.path().join("raw"));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let engine = EngineSide::open(&ours).await.unwrap();
            let raw = RawSide::open(&raw).unwrap();
            engine.register().await;
            raw.register().await;
            // From the first step on: a device that starts later replaces another entry.
            let readings = Stream::new(1, 1).take(1500);
            engine
                .write(
                    readings
                        .iter()
                        .map(|reading| engine.request(*reading))
                        .collect(),
                )
                .await;
            raw.write(
                readings
                    .iter()
                    .map(|reading| raw.request(*reading))
                    .collect(),
            )
            .await;
        });
        let contents = |name| (content(&ours.join("store"), name), content(&raw, name));
        for name in ["t1", "t1i0", "t2", "t3"] {
            let (expected, raw) = contents(name);
            assert!(!expected.is_empty(), "{name} is empty");
            assert_eq!(expected, raw, "{name}");
        }
        // The grouping of readings is random, and visible only in the pages.
        let (expected, raw) = contents("expiry-pages");
        assert_eq!(listed(&expected).len(), 3000);
        assert_eq!(listed(&expected), listed(&raw));
    }

    /// Windows, tables and names of items, from pages.
    fn listed(pages: &Content) -> BTreeSet<(Vec<u8>, Vec<u8>, Vec<u8>)> {
        let mut listed = BTreeSet::new();
        for (key, value) in pages {
            assert_eq!((key.len(), value[0]), (20, 1));
            let mut name = Vec::new();
            let mut rest = &value[5..];
            while let [a, b, c, d, after @ ..] = rest {
                let len = |high: &u8, low: &u8| usize::from(u16::from_be_bytes([*high, *low]));
                let (own, after) = after.split_at(len(c, d));
                name.truncate(len(a, b));
                name.extend_from_slice(own);
                listed.insert((key[..8].to_vec(), value[1..5].to_vec(), name.clone()));
                rest = after;
            }
        }
        listed
    }
}
