//! Compatibility test: a keyring, a value and a file in the first version of the format must stay readable.

use std::io::Read as _;
use std::sync::Arc;

use homeport_store::SystemClock;

use crate::storage::seal::file::{self, FileKeys};
use crate::storage::seal::keyring::{KEYRING_FILE, Keyring};
use crate::storage::seal::master::MasterKey;
use crate::storage::seal::sealer::Sealer;

const MASTER: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const FINGERPRINT: &str = "0320e8b241f2b6b2";
const KEYRING: &str = concat!(
    "686f6d65706f7274206b657972696e670a0161122b04f05972e0070f22f3aba533210320e8b241f2b6b20000",
    "0001000001a1e5101188f5e219098d47c0a52fb5b9e61a090910a1c80de39a29b61dacae26bb4ceb37bc791a",
    "cb13affb24d5d44568982101c7b340e340ee44c53d6c6df407d1df9e8d0fb820d5d8b44a7fa991c54b66c9de",
    "36e131dbb1c1fbed0ba28d80b875a7120586b63333bd",
);
/// "a value", at key "key" of the keyspace "t1".
const VALUE: &str = "0100000001000000006e33d9fee6167b5d09959871d80ae1a98d88ad0e40e007";
/// "a file".
const FILE: &str = concat!(
    "686f6d65706f7274207365616c65642066696c650a0161122b04f05972e0070f22f3aba533210320e8b241f2",
    "b6b200000001000001a1e5101188f5e219098d47c0a52fb5b9e61a090910a1c80de39a29b61dacae26bb4ceb",
    "37bc791acb13affb24d5d44568982101c7b340e340ee44c53d6c6df407d17347048c54bdfb3cc9a570ad40a9",
    "dcfb4bd62a18d0d879e69917778ab95f6ec726a7ed2b299a",
);

#[test]
fn first_format_is_still_readable() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, hexadecimal: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, hex::decode(hexadecimal).unwrap()).unwrap();
        path
    };
    write(KEYRING_FILE, KEYRING);
    let path = write("file", FILE);
    let master = MasterKey::parse(MASTER).unwrap();
    assert_eq!(master.fingerprint().to_string(), FINGERPRINT);
    let keyring = Keyring::open(directory.path(), &master).unwrap().unwrap();
    let sealer = Sealer::new(
        directory.path(),
        keyring,
        master.clone(),
        Arc::new(SystemClock),
    );
    let value = hex::decode(VALUE).unwrap();
    let opened = sealer.open("t1", b"key", &value);
    assert_eq!(opened.as_deref(), Some(&b"a value"[..]));
    for keys in [
        FileKeys::Store(Some(&sealer)),
        FileKeys::Master(Some(&master)),
    ] {
        let mut text = String::new();
        let mut reader = file::open(&path, keys).unwrap();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "a file");
    }
}
