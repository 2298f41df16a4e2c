//! Any bytes as a key of every type. A decoded key must have no other encoding.

#![no_main]

use homeport_item::{KeyKind, key};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for kind in [KeyKind::S, KeyKind::N, KeyKind::B] {
        let mut rest = bytes;
        let Ok(value) = key::decode(kind, &mut rest) else {
            continue;
        };
        let mut encoded = Vec::new();
        assert!(key::encode(&value, &mut encoded));
        assert_eq!(encoded, bytes[..bytes.len() - rest.len()]);
    }
});
