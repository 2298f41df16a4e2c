//! Any bytes as a page of expiring items. A decoded page must survive a round trip.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    assert_ne!(homeport_engine::fuzzing::expiry_page(bytes), Some(false));
});
