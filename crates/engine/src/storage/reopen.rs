//! Reopens the key-value store after a failed write, once the cause is gone: the disk has space again, file
//! descriptors are free, the disk responds.
//!
//! The key-value store refuses all writes after a failed one, because it does not know what reached the disk.
//! Reopening finds out: it closes the store, waits for running reads, and takes the same checked steps as a
//! start (`opening`). No acknowledged write may be missing afterwards. A group whose callers got the error is
//! either completely present or completely absent.
//!
//! IMPORTANT: all of this runs on the committer's thread, between two groups, so that nothing is written in
//! the meantime. Reads fail while the store is closed.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::catalogue::Catalogue;
use crate::catalogue::jobs;
use crate::commit::committer::Committer;
use crate::error::OpenError;
use crate::shared::Shared;
use crate::storage::integrity::verify::{self, VerifyScope};
use crate::storage::journal;
use crate::storage::layout;
use crate::storage::opening;

/// How long to wait for running reads before reopening is retried later.
const READS_WAIT_MAX: Duration = Duration::from_secs(10);
/// The longest pause between two attempts, in ticks of the watch thread; the pause doubles with each attempt.
const PAUSE_TICKS_MAX: u32 = 64;
/// Ticks without failure after which the pause starts short again.
const CALM_TICKS: u32 = 60;
const PROBE_FILE: &str = "probe";
const PROBE_BYTES: usize = 64 * 1024;
/// File descriptors that must be free.
const PROBE_DESCRIPTORS: usize = 64;
const JOURNAL_COPY: &str = "journal.new";
const COPY_BYTES: usize = 64 * 1024;

/// Decides when the watch thread tries to reopen the store.
#[derive(Debug, Default)]
pub(crate) struct Reopener {
    pause: u32,
    waited: u32,
    calm: u32,
}

impl Reopener {
    /// Called about every second.
    pub(crate) fn tick(&mut self, shared: &Arc<Shared>) {
        // A flush may have failed without any write.
        let _ = shared.notice_failure();
        let Some(failure) = shared.latch.failure() else {
            self.calm = self.calm.saturating_add(1);
            if self.calm >= CALM_TICKS {
                self.pause = 0;
            }
            return;
        };
        if failure.needs_restart {
            return;
        }
        self.waited += 1;
        if self.waited < self.pause {
            return;
        }
        // The store stays open for reads until writing is possible again.
        if let Err(error) = probe(shared) {
            tracing::debug!(%error, "the store is not reopened yet");
            return;
        }
        self.waited = 0;
        self.calm = 0;
        self.pause = (self.pause * 2).clamp(1, PAUSE_TICKS_MAX);
        let reopened = shared.exclusive(|committer| {
            let reopened = reopen(committer);
            match &reopened {
                Ok(()) => tracing::info!("the store was reopened: writes are accepted again"),
                Err(error) => {
                    tracing::error!(%error, "reopening the store failed; it is retried");
                    committer.shared.latch.reopening_failed(&error.to_string());
                }
            }
        });
        // An error means that the engine is closing.
        let _ = reopened.blocking_recv();
    }
}

/// Checks that there is space and that files can be opened, written and synced.
fn probe(shared: &Shared) -> std::io::Result<()> {
    shared.disk_space.refresh();
    shared
        .disk_space
        .check_deletes()
        .map_err(|error| std::io::Error::other(error.to_string()))?;
    let path = shared.directory.join(PROBE_FILE);
    let probed = write_probe(&path);
    let removed = std::fs::remove_file(&path);
    probed.and(removed)
}

fn write_probe(path: &Path) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(&[0x5a; PROBE_BYTES])?;
    file.sync_all()?;
    let opened: std::io::Result<Vec<File>> =
        (0..PROBE_DESCRIPTORS).map(|_| File::open(path)).collect();
    opened.map(drop)
}

fn reopen(committer: &mut Committer) -> Result<(), OpenError> {
    let shared = Arc::clone(&committer.shared);
    if shared.latch.failure().is_none() {
        return Ok(());
    }
    let storage = |error: crate::storage::vault::Error| OpenError::Storage(error.to_string());
    shared.latch.reopening();
    if !shared.database.close(READS_WAIT_MAX) {
        return Err(OpenError::Storage(
            "reads of the closed store have not ended yet".to_owned(),
        ));
    }
    renew_active_journal(&shared.directory.join(layout::STORE_DIR))?;
    let acknowledged = shared.synced_commit.load(Ordering::Acquire);
    let verified = verify::verify(&shared.directory, false, None, VerifyScope::None)?;
    let opened = opening::open(&shared.marks, &verified, |_| {
        let database = shared.database.clone();
        database.reopen(acknowledged).map_err(storage)?;
        Ok(database)
    });
    let finished = opened.and_then(|opened| {
        if let Some(error) = opened.unwritten {
            return Err(OpenError::Storage(error));
        }
        // The changes of the failed group may or may not be present.
        let catalogue = Catalogue::load(&shared.database, &shared.keyspaces)?;
        Ok((opened.last, catalogue))
    });
    let (last, catalogue) = match finished {
        Ok(finished) => finished,
        Err(error) => {
            shared.database.close(Duration::ZERO);
            return Err(error);
        }
    };
    let unfinished: Vec<_> = catalogue
        .tables()
        .filter(|table| table.has_job())
        .map(|table| table.id())
        .collect();
    let written = shared.written_commit.load(Ordering::Acquire);
    // The first group of this opening has the next number.
    if last.commit <= written {
        tracing::error!(
            commits = written + 1 - last.commit,
            "the last commits were acknowledged but not synced, and are lost, because durability is relaxed"
        );
    }
    shared.catalogue.replace(catalogue);
    // The items that the failed group lists as expiring are not in memory.
    shared.expiring.forget();
    committer.resume_from(last);
    shared.latch.open();
    for table in unfinished {
        jobs::start(&shared, table);
    }
    Ok(())
}

/// Replaces the active journal by a copy of itself that is completely on disk.
///
/// IMPORTANT: after a failed sync, the operating system may regard pages as written that are not, so syncing
/// the same file again would prove nothing. Also, a thread of the closed store may still hold the old file
/// and write its buffer to it later; that does not affect the copy.
fn renew_active_journal(store: &Path) -> Result<(), OpenError> {
    let Some((_, path)) = journal::journals_in(store)?.into_iter().max() else {
        return Ok(());
    };
    let copy = store.join(JOURNAL_COPY);
    let copied = copy_sparse(&path, &copy);
    if copied.is_err() {
        let _ = std::fs::remove_file(&copy);
    }
    copied?;
    std::fs::rename(&copy, &path)?;
    File::open(store)?.sync_all()?;
    Ok(())
}

/// Copies a file and keeps its holes, because a journal is preallocated.
fn copy_sparse(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut source = File::open(from)?;
    let mut target = File::create(to)?;
    target.set_permissions(source.metadata()?.permissions())?;
    let mut chunk = vec![0; COPY_BYTES];
    let mut length = 0;
    loop {
        let read = source.read(&mut chunk)?;
        if read == 0 {
            break;
        }
        let bytes = &chunk[..read];
        if bytes.iter().any(|byte| *byte != 0) {
            target.seek(SeekFrom::Start(length))?;
            target.write_all(bytes)?;
        }
        length += u64::try_from(read).map_err(std::io::Error::other)?;
    }
    target.set_len(length)?;
    target.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    use homeport_item::schema::TableSchema;
    use homeport_item::{Item, KeyKind};
    use homeport_store::{Get, Put, Store as _};

    use crate::engine::{Condition, Engine};
    use crate::options::Options;

    fn open(directory: &Path) -> Engine {
        Engine::open(directory, Options::for_tests()).unwrap()
    }

    async fn until_reopened(engine: &Engine) {
        let wait = async {
            while engine.condition() != Condition::Ready {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(30), wait);
        waited.await.expect("reopened in time");
        assert_eq!(engine.metrics().reopened, 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn keyspace_of_a_surviving_table_is_not_reused() {
        let directory = tempfile::tempdir().unwrap();
        let engine = open(directory.path());
        let create = async |name: &str| {
            let schema = TableSchema::new(name, "id", KeyKind::S);
            engine.create_table(schema).await.unwrap();
        };
        create("survivor").await;
        let item = Item::new().with("id", "a");
        let put = engine.put(Put::new("survivor", item.clone()));
        put.await.unwrap();
        // The state after a failed commit of a new table that is in the catalogue on disk, but not yet in
        // memory.
        let failed = engine.shared().exclusive(|committer| {
            let shared = Arc::clone(&committer.shared);
            shared.latch.close("a test");
            let mut catalogue = Catalogue::clone(&shared.catalogue.now());
            let table = catalogue.remove("survivor").unwrap();
            shared.catalogue.replace(catalogue);
            committer.retire_keyspace(Arc::clone(&table.items));
        });
        failed.await.unwrap();
        until_reopened(&engine).await;
        create("next").await;
        let found = engine.get(Get::new("survivor", item)).await.unwrap();
        assert!(found.is_some());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn expiring_items_are_reread_after_reopening() {
        let directory = tempfile::tempdir().unwrap();
        let engine = open(directory.path());
        let expiring = &engine.shared().expiring;
        expiring.begin(u64::MAX);
        engine.shared().latch.close("a test");
        until_reopened(&engine).await;
        assert_eq!(expiring.complete_until_secs(), 0);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn store_being_reopened_is_shown_as_closed() {
        let directory = tempfile::tempdir().unwrap();
        let engine = open(directory.path());
        let keyspace = engine.shared().keyspaces.meta.clone();
        // Closing waits for this read.
        let read = keyspace.iter();
        engine.shared().latch.close("a test");
        let wait = async {
            while !matches!(engine.condition(), Condition::Closed(_)) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(READS_WAIT_MAX / 2, wait);
        waited.await.expect("reported as closed in time");
        drop(read);
        until_reopened(&engine).await;
    }

    #[test]
    fn copied_journal_keeps_bytes_and_length() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("3.jnl");
        let mut bytes = vec![7; 100_000];
        bytes.extend(vec![0; 300_000]);
        bytes.extend([1, 2, 3]);
        bytes.extend(vec![0; 70_000]);
        std::fs::write(&path, &bytes).unwrap();
        std::fs::write(directory.path().join("2.jnl"), b"older").unwrap();
        renew_active_journal(directory.path()).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        assert!(!directory.path().join(JOURNAL_COPY).exists());
    }
}
