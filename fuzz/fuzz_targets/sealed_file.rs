//! Any bytes as a file that may be sealed. Reading it never panics; one that begins like a sealed file is
//! never read as one that is not.

#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use homeport_engine::{MasterKey, fuzzing};
use libfuzzer_sys::fuzz_target;

const MASTER_KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| tempfile::tempdir().expect("a directory").keep().join("file"));
static MASTER: LazyLock<MasterKey> =
    LazyLock::new(|| MasterKey::parse(MASTER_KEY).expect("a key"));

fuzz_target!(|bytes: &[u8]| {
    std::fs::write(&*FILE, bytes).expect("a file");
    if let Some(read) = fuzzing::sealed_file(&FILE, &MASTER) {
        assert!(read == bytes || read.len() < bytes.len());
    }
});
