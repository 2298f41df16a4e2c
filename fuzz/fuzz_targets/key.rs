//! Any bytes as a key of every type. What can be decoded must be the same after another round.

#![no_main]

use homeport_item::{KeyKind, key};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for kind in [KeyKind::S, KeyKind::N, KeyKind::B] {
        let Ok(value) = key::decode(kind, &mut &*bytes) else {
            continue;
        };
        let mut encoded = Vec::new();
        assert!(key::encode(&value, &mut encoded));
        let mut rest = encoded.as_slice();
        assert_eq!(key::decode(kind, &mut rest), Ok(value));
        assert!(rest.is_empty());
    }
});
