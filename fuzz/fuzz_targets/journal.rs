//! Any bytes as a journal: unchanged, or, after a zero, as the entries of a batch with the matching checksum and the bytes
//! after it. Checking must not panic. An accepted journal, cut where its unsynced end begins, must be accepted again.

#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use homeport_engine::fuzzing;
use libfuzzer_sys::fuzz_target;
use xxhash_rust::xxh3::xxh3_64;

static STORE: LazyLock<PathBuf> =
    LazyLock::new(|| tempfile::tempdir().expect("a directory").keep());

fuzz_target!(|bytes: &[u8]| {
    let journal = with_checksum(bytes).unwrap_or_else(|| bytes.to_vec());
    std::fs::write(STORE.join("0.jnl"), journal).expect("a journal");
    assert_ne!(fuzzing::journal(&STORE), Some(false));
});

/// Encodes `00 count len(2) entries{len} rest` as a batch of `count` entries, and the rest.
fn with_checksum(bytes: &[u8]) -> Option<Vec<u8>> {
    let (&[0, count, low, high], rest) = bytes.split_first_chunk()? else {
        return None;
    };
    let (entries, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes([low, high])))?;
    let mut journal = vec![1, count, 0, 0, 0];
    journal.extend_from_slice(&1_u64.to_le_bytes());
    journal.extend_from_slice(entries);
    journal.push(3);
    journal.extend_from_slice(&xxh3_64(entries).to_le_bytes());
    journal.extend_from_slice(b"FJL\x03");
    journal.extend_from_slice(rest);
    Some(journal)
}
