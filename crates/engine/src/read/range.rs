//! Ranges of stored keys: of a key condition, and of a segment of a parallel scan.

use std::ops::Bound;

use homeport_item::expression::{KeyCondition, SortCondition};
use homeport_item::schema::KeySchema;
use homeport_item::{Value, key};
use homeport_store::{Segment, StoreError};

use crate::storage::layout;
use crate::storage::vault::UserKey;

/// The maximum number of segments of a parallel scan.
const SEGMENTS_MAX: u32 = 1_000_000;
/// The number of values of a key's first byte.
const BUCKETS: u64 = 256;

/// A range of stored keys.
#[derive(Debug, Clone)]
pub(super) struct KeyRange {
    pub(super) lower: Bound<UserKey>,
    pub(super) upper: Bound<UserKey>,
}

impl KeyRange {
    pub(super) fn all() -> Self {
        Self {
            lower: Bound::Unbounded,
            upper: Bound::Unbounded,
        }
    }

    fn starting_with(prefix: Vec<u8>) -> Self {
        Self {
            upper: end_of(&prefix),
            lower: Bound::Included(prefix.into()),
        }
    }

    pub(super) fn contains(&self, key: &UserKey) -> bool {
        let above = match &self.lower {
            Bound::Included(lower) => key >= lower,
            Bound::Excluded(lower) => key > lower,
            Bound::Unbounded => true,
        };
        let below = match &self.upper {
            Bound::Included(upper) => key <= upper,
            Bound::Excluded(upper) => key < upper,
            Bound::Unbounded => true,
        };
        above && below
    }

    pub(super) fn is_empty(&self) -> bool {
        match (&self.lower, &self.upper) {
            (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
            (
                Bound::Included(lower) | Bound::Excluded(lower),
                Bound::Included(upper) | Bound::Excluded(upper),
            ) => lower >= upper,
            _ => false,
        }
    }
}

fn end_of(prefix: &[u8]) -> Bound<UserKey> {
    match layout::prefix_end(prefix) {
        Some(end) => Bound::Excluded(end.into()),
        None => Bound::Unbounded,
    }
}

/// The stored keys that match a key condition: always one range.
pub(super) fn key_range(
    schema: &KeySchema,
    condition: &KeyCondition,
) -> Result<KeyRange, StoreError> {
    condition.check(schema).map_err(StoreError::invalid)?;
    let (partition_rest, leading) = condition.rest.split_at(schema.partition_rest.len());
    let further = partition_rest.iter().map(|(_, value)| value);
    let mut partition =
        layout::partition_prefix(std::iter::once(&condition.partition).chain(further));
    layout::encode_all(leading.iter().map(|(_, value)| value), &mut partition);
    let Some((_, sort)) = &condition.sort else {
        return Ok(KeyRange::starting_with(partition));
    };
    let at = |value: &Value| -> Vec<u8> {
        let mut bytes = partition.clone();
        let is_key = key::encode(value, &mut bytes);
        debug_assert!(is_key, "the condition was just checked");
        bytes
    };
    let from_start = Bound::Included(UserKey::from(partition.as_slice()));
    let to_end = end_of(&partition);
    Ok(match sort {
        SortCondition::Equal(value) => KeyRange::starting_with(at(value)),
        SortCondition::Less(value) => KeyRange {
            lower: from_start,
            upper: Bound::Excluded(at(value).into()),
        },
        SortCondition::LessOrEqual(value) => KeyRange {
            lower: from_start,
            upper: end_of(&at(value)),
        },
        SortCondition::Greater(value) => KeyRange {
            lower: after_prefix(&at(value)),
            upper: to_end,
        },
        SortCondition::GreaterOrEqual(value) => KeyRange {
            lower: Bound::Included(at(value).into()),
            upper: to_end,
        },
        SortCondition::Between(from, to) => KeyRange {
            lower: Bound::Included(at(from).into()),
            upper: end_of(&at(to)),
        },
        SortCondition::BeginsWith(prefix) => {
            let bytes: &[u8] = match prefix {
                Value::S(text) => text.as_bytes(),
                Value::B(bytes) => bytes,
                _ => {
                    return Err(StoreError::invalid(
                        "begins_with needs a string or a binary",
                    ));
                }
            };
            let mut start = partition.clone();
            key::encode_prefix(bytes, &mut start);
            KeyRange::starting_with(start)
        }
    })
}

/// The position after every key that starts with `prefix`.
fn after_prefix(prefix: &[u8]) -> Bound<UserKey> {
    match layout::prefix_end(prefix) {
        Some(end) => Bound::Included(end.into()),
        None => Bound::Excluded(prefix.into()),
    }
}

/// A segment is a range of buckets; with more segments than buckets, some are empty.
pub(super) fn segment_range(segment: Segment) -> Result<KeyRange, StoreError> {
    if segment.total == 0 || segment.total > SEGMENTS_MAX || segment.index >= segment.total {
        return Err(StoreError::invalid(format!(
            "segment {} of {} does not exist",
            segment.index, segment.total
        )));
    }
    let first = |index: u32| u64::from(index) * BUCKETS / u64::from(segment.total);
    let bound = |bucket: u64| UserKey::from([bucket.min(BUCKETS - 1) as u8].as_slice());
    let (from, to) = (first(segment.index), first(segment.index + 1));
    Ok(KeyRange {
        lower: Bound::Included(bound(from)),
        upper: if to >= BUCKETS {
            Bound::Unbounded
        } else {
            Bound::Excluded(bound(to))
        },
    })
}
