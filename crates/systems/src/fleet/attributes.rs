//! Reads attributes of stored items, which other programs may have written.

use homeport_item::{Item, Value};

use crate::time::EpochMillis;

/// A text attribute.
pub(crate) fn text<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    item.get(name).and_then(Value::as_str)
}

/// An attribute that is a whole number.
pub(crate) fn integer(item: &Item, name: &str) -> Option<i64> {
    item.get(name)?.as_number()?.to_i64()
}

/// An attribute that is a number of milliseconds since 1970.
pub(crate) fn millis(item: &Item, name: &str) -> Option<EpochMillis> {
    integer(item, name).map(EpochMillis)
}

/// A time in the form of RFC 3339.
pub(crate) fn moment(text: &str) -> Option<EpochMillis> {
    let timestamp: jiff::Timestamp = text.parse().ok()?;
    Some(EpochMillis(timestamp.as_millisecond()))
}

/// Some attributes of an item.
pub(crate) fn pick(item: &Item, names: &[&str]) -> Item {
    let found = names.iter().filter_map(|name| {
        let value = item.get(name)?;
        Some(((*name).to_owned(), value.clone()))
    });
    found.collect()
}
