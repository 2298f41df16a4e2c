//! Parses stored items.

use homeport_item::{Item, Value};

use super::types::{DeviceId, JournalId};
use super::{RecordsError, schema};

/// A required attribute, parsed from text.
pub(super) fn text<T: TryFrom<String>>(item: &Item, name: &str) -> Result<T, RecordsError> {
    optional_text(item, name)?.ok_or_else(|| malformed(item, name))
}

/// An optional attribute, parsed from text.
pub(super) fn optional_text<T: TryFrom<String>>(
    item: &Item,
    name: &str,
) -> Result<Option<T>, RecordsError> {
    let Some(value) = item.get(name) else {
        return Ok(None);
    };
    value
        .as_str()
        .and_then(|text| T::try_from(text.to_owned()).ok())
        .map(Some)
        .ok_or_else(|| malformed(item, name))
}

/// An optional integer.
pub(super) fn optional_integer<T: TryFrom<i64>>(
    item: &Item,
    name: &str,
) -> Result<Option<T>, RecordsError> {
    let Some(value) = item.get(name) else {
        return Ok(None);
    };
    value
        .as_number()
        .and_then(|number| T::try_from(number.to_i64()?).ok())
        .map(Some)
        .ok_or_else(|| malformed(item, name))
}

pub(super) fn sort_key(item: &Item) -> &str {
    item.get(schema::SK)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The number at a position of an item's sort key.
pub(super) fn id_at(item: &Item, at: usize) -> Result<u64, RecordsError> {
    schema::ids_in(sort_key(item))
        .nth(at)
        .and_then(|id| id.parse().ok())
        .ok_or_else(|| malformed(item, schema::SK))
}

/// The device and the journal in the sort key of a journal, a record or a latest record.
pub(super) fn journal_ids(item: &Item) -> Result<(DeviceId, JournalId), RecordsError> {
    Ok((DeviceId(id_at(item, 0)?), JournalId(id_at(item, 1)?)))
}

pub(super) fn malformed(item: &Item, name: &str) -> RecordsError {
    RecordsError::Malformed(format!("{name} of {:?}", sort_key(item)))
}
