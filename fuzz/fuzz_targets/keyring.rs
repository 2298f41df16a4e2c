//! Any bytes as a keyring with the matching checksum. Opening must not panic, and must accept only the keyring that was made
//! with the master key: any other one would be forged.

#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use homeport_engine::{MasterKey, fuzzing};
use libfuzzer_sys::fuzz_target;
use xxhash_rust::xxh3::xxh3_64;

const MASTER_KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// The seed, which was made with the master key.
const KEYRING: &[u8] = include_bytes!("../seeds/keyring/one_key");

static DIRECTORY: LazyLock<PathBuf> =
    LazyLock::new(|| tempfile::tempdir().expect("a directory").keep());
static MASTER: LazyLock<MasterKey> = LazyLock::new(|| MasterKey::parse(MASTER_KEY).expect("a key"));

fuzz_target!(|bytes: &[u8]| {
    let mut keyring = bytes.to_vec();
    keyring.extend_from_slice(&xxh3_64(bytes).to_be_bytes());
    std::fs::write(DIRECTORY.join("keyring"), keyring).expect("a keyring");
    let expected = (bytes == KEYRING).then_some(1);
    assert_eq!(fuzzing::keyring(&DIRECTORY, &MASTER), expected);
});
