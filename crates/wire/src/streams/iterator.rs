//! Shard iterators. They contain everything that is needed to continue reading, so they survive restarts of the server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homeport_engine::{ShardId, ShardPosition, StreamId};

use crate::failure::Failure;

/// The validity of an iterator.
const AGE_MAX_MS: i64 = 15 * 60 * 1000;
const VERSION: u8 = 1;
const PAYLOAD_LEN: usize = 46;
const CHECKSUM_LEN: usize = 4;

/// A position in a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShardIterator {
    pub(crate) stream: StreamId,
    pub(crate) shard: ShardId,
    pub(crate) position: ShardPosition,
    pub(crate) issued_at_ms: i64,
}

impl ShardIterator {
    /// The text for clients: the ARN of the stream, as in DynamoDB, and the encoded iterator.
    pub(crate) fn write(&self, stream_arn: &str) -> String {
        let (kind, sequence) = match self.position {
            ShardPosition::Oldest => (0, 0),
            ShardPosition::At(sequence) => (1, sequence),
        };
        let mut bytes = Vec::with_capacity(PAYLOAD_LEN + CHECKSUM_LEN);
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.stream.table_id.to_be_bytes());
        bytes.extend_from_slice(&self.stream.enabled_at_ms.to_be_bytes());
        bytes.extend_from_slice(&self.shard.started_at_ms.to_be_bytes());
        bytes.extend_from_slice(&self.shard.first.to_be_bytes());
        bytes.push(kind);
        bytes.extend_from_slice(&sequence.to_be_bytes());
        bytes.extend_from_slice(&self.issued_at_ms.to_be_bytes());
        let checksum = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&checksum.to_be_bytes());
        format!("{stream_arn}|1|{}", STANDARD.encode(bytes))
    }

    /// Parses a valid iterator. Returns it with the ARN in front of it.
    pub(crate) fn read(text: &str, now_ms: i64) -> Result<(Self, &str), Failure> {
        let (arn, iterator) =
            parse(text).ok_or_else(|| Failure::validation("Invalid ShardIterator"))?;
        if now_ms.saturating_sub(iterator.issued_at_ms) > AGE_MAX_MS {
            return Err(Failure::expired_iterator());
        }
        Ok((iterator, arn))
    }

    /// Parses an iterator, which may have expired.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        parse(text).map(|(_, iterator)| iterator)
    }
}

fn parse(text: &str) -> Option<(&str, ShardIterator)> {
    let (arn, encoded) = text.split_once("|1|")?;
    let bytes = STANDARD.decode(encoded).ok()?;
    let (payload, checksum) = bytes.split_last_chunk::<CHECKSUM_LEN>()?;
    if crc32fast::hash(payload).to_be_bytes() != *checksum {
        return None;
    }
    let (version, rest) = payload.split_first()?;
    let (table_id, rest) = rest.split_first_chunk::<4>()?;
    let (enabled_at_ms, rest) = rest.split_first_chunk::<8>()?;
    let (started_at_ms, rest) = rest.split_first_chunk::<8>()?;
    let (first, rest) = rest.split_first_chunk::<8>()?;
    let (kind, rest) = rest.split_first()?;
    let (sequence, rest) = rest.split_first_chunk::<8>()?;
    let issued_at_ms: &[u8; 8] = rest.try_into().ok()?;
    let position = match kind {
        0 => ShardPosition::Oldest,
        1 => ShardPosition::At(u64::from_be_bytes(*sequence)),
        _ => return None,
    };
    let iterator = ShardIterator {
        stream: StreamId {
            table_id: u32::from_be_bytes(*table_id),
            enabled_at_ms: i64::from_be_bytes(*enabled_at_ms),
        },
        shard: ShardId {
            started_at_ms: i64::from_be_bytes(*started_at_ms),
            first: u64::from_be_bytes(*first),
        },
        position,
        issued_at_ms: i64::from_be_bytes(*issued_at_ms),
    };
    (*version == VERSION).then_some((arn, iterator))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iterator(position: ShardPosition) -> ShardIterator {
        ShardIterator {
            stream: StreamId {
                table_id: 7,
                enabled_at_ms: 1_700_000_000_123,
            },
            shard: ShardId {
                started_at_ms: 1_700_000_000_123,
                first: 42,
            },
            position,
            issued_at_ms: 1_700_000_001_000,
        }
    }

    #[test]
    fn iterators_round_trip_until_they_expire() {
        for position in [ShardPosition::Oldest, ShardPosition::At(99)] {
            let given = iterator(position);
            let text = given.write("arn:x");
            let last_ms = given.issued_at_ms + AGE_MAX_MS;
            let (read, arn) = ShardIterator::read(&text, last_ms).expect("valid");
            assert_eq!((read, arn), (given, "arn:x"));
            let failure = ShardIterator::read(&text, last_ms + 1).expect_err("too old");
            assert_eq!(failure.kind(), "ExpiredIteratorException");
        }
    }

    #[test]
    fn extreme_times_do_not_panic() {
        for (issued_at_ms, expired) in [(i64::MIN, true), (i64::MAX, false)] {
            let forged = ShardIterator {
                issued_at_ms,
                ..iterator(ShardPosition::Oldest)
            };
            let read = ShardIterator::read(&forged.write("arn:x"), 1_700_000_001_000).map(|_| ());
            assert_eq!(read.is_err(), expired, "{issued_at_ms}");
        }
    }

    #[test]
    fn changed_iterators_are_rejected() {
        let text = iterator(ShardPosition::At(99)).write("arn:x");
        let (arn, encoded) = text.split_once("|1|").expect("three parts");
        let mut bytes = STANDARD.decode(encoded).expect("base64");
        for at in 0..bytes.len() {
            bytes[at] ^= 1;
            let changed = format!("{arn}|1|{}", STANDARD.encode(&bytes));
            let failure = ShardIterator::read(&changed, 0).expect_err("changed");
            assert_eq!(failure.text(), Some("Invalid ShardIterator"));
            bytes[at] ^= 1;
        }
        for other in ["", "arn:x", "arn:x|1|", "arn:x|1|AAAA", "a|1|!"] {
            assert!(ShardIterator::read(other, 0).is_err(), "{other}");
        }
    }
}
