//! Any bytes as a stored item. A decoded item must survive a round trip.

#![no_main]

use homeport_item::{ItemRef, binary};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(view) = ItemRef::new(bytes) else {
        return;
    };
    let _ = view.get("a");
    let Ok(item) = view.to_item() else {
        return;
    };
    let mut encoded = Vec::new();
    binary::encode_item(item.iter(), &mut encoded);
    let again = ItemRef::new(&encoded).and_then(|view| view.to_item());
    assert_eq!(again, Ok(item));
});
