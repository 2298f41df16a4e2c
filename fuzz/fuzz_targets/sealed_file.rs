//! Any bytes as a file that may be sealed. Reading must not panic, and a file with a sealed file's header must never be read as plain.

#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use homeport_engine::{MasterKey, fuzzing};
use libfuzzer_sys::fuzz_target;

const MASTER_KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// The beginning of every sealed file, and the length of its header.
const MAGIC: &[u8] = b"homeport sealed file\n\x01";
const HEAD_BYTES: usize = MAGIC.len() + 16 + 8 + 4 + 8 + 12 + 48 + 16;

static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    tempfile::tempdir()
        .expect("a directory")
        .keep()
        .join("file")
});
static MASTER: LazyLock<MasterKey> = LazyLock::new(|| MasterKey::parse(MASTER_KEY).expect("a key"));

fuzz_target!(|bytes: &[u8]| {
    std::fs::write(&*FILE, bytes).expect("a file");
    if let Some(read) = fuzzing::sealed_file(&FILE, &MASTER) {
        if bytes.starts_with(MAGIC) {
            assert!(
                read.len() + HEAD_BYTES <= bytes.len(),
                "a sealed file is read as plain"
            );
        } else {
            assert_eq!(read, bytes, "a plain file is read as another one");
        }
    }
});
