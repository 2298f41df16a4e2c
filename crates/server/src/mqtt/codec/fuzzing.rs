//! The entry point for the fuzz target in `fuzz/`, behind a feature that nothing else enables.

use bytes::BytesMut;

use super::{Version, first, next};

/// The largest packet with the default settings.
const PACKET_BYTES_MAX: usize = 256 * 1024;

/// Decodes bytes as a first packet, and as further packets of both versions.
pub fn packets(bytes: &[u8]) {
    let _ = first(&mut BytesMut::from(bytes), PACKET_BYTES_MAX);
    for version in [Version::V3, Version::V5] {
        let mut buffer = BytesMut::from(bytes);
        let mut left = buffer.len();
        while let Ok(Some(_)) = next(&mut buffer, version, PACKET_BYTES_MAX) {
            assert!(buffer.len() < left, "a packet takes bytes");
            left = buffer.len();
        }
    }
}
