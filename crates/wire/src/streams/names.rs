//! Shard ids and sequence numbers in requests and responses.

use homeport_engine::ShardId;

pub(crate) const SHARD_ID_LEN: (usize, usize) = (28, 65);
pub(crate) const SEQUENCE_NUMBER_LEN: (usize, usize) = (21, 40);
pub(crate) const STREAM_ARN_LEN: (usize, usize) = (37, 1024);

const SHARD_PREFIX: &str = "shardId-";
/// Added to the numbers of the engine, so that all have 21 digits.
const SEQUENCE_BASE: u128 = 100_000_000_000_000_000_000;

/// The id of a shard. Ids sort like their shards.
pub(crate) fn shard_id(id: ShardId) -> String {
    format!("{SHARD_PREFIX}{:020}-{:08x}", id.started_at_ms, id.first)
}

pub(crate) fn parse_shard_id(text: &str) -> Option<ShardId> {
    let (started, first) = text.strip_prefix(SHARD_PREFIX)?.split_once('-')?;
    Some(ShardId {
        started_at_ms: started.parse().ok()?,
        first: u64::from_str_radix(first, 16).ok()?,
    })
}

pub(crate) fn sequence_number(sequence: u64) -> String {
    (SEQUENCE_BASE + u128::from(sequence)).to_string()
}

pub(crate) fn parse_sequence_number(text: &str) -> Option<u64> {
    let number: u128 = text.parse().ok()?;
    u64::try_from(number.checked_sub(SEQUENCE_BASE)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers_round_trip_with_fixed_length() {
        for sequence in [0, 1, 9_999_999, u64::MAX] {
            let text = sequence_number(sequence);
            assert_eq!(text.len(), SEQUENCE_NUMBER_LEN.0);
            assert_eq!(parse_sequence_number(&text), Some(sequence));
        }
        assert!(sequence_number(99) < sequence_number(100));
        for text in ["", "-1", "000000000000000000001", &"9".repeat(40)] {
            assert_eq!(parse_sequence_number(text), None, "{text}");
        }
    }

    #[test]
    fn shard_ids_round_trip_with_dynamodb_length() {
        for (started_at_ms, first) in [(0, 1), (1_800_000_000_000, u64::MAX)] {
            let id = ShardId {
                started_at_ms,
                first,
            };
            let text = shard_id(id);
            assert!((SHARD_ID_LEN.0..=SHARD_ID_LEN.1).contains(&text.len()));
            assert_eq!(parse_shard_id(&text), Some(id));
        }
        assert_eq!(parse_shard_id("shardId-x-y"), None);
    }
}
