//! Any bytes as a client's MQTT packets, first and later ones, in both versions. Decoding must not panic, and every decoded
//! packet must consume bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| homeport_server::fuzz_packets(bytes));
