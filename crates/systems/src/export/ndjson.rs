//! Items as newline-delimited JSON, with every digit of a number.

use homeport_item::Item;
use homeport_item::json::write_string;

use super::PageOf;
use crate::plain_json;
use crate::time::UtcMillis;

/// Writes rows of a device; each line has the device, the time and the item.
pub(super) fn rows(page: &PageOf<'_>, out: &mut Vec<u8>) {
    for row in page.rows {
        out.extend_from_slice(b"{\"system\":");
        write_string(page.system, out);
        out.extend_from_slice(b",\"device\":");
        write_string(page.device, out);
        out.extend_from_slice(b",\"at\":");
        write_string(&UtcMillis::new(row.at).to_string(), out);
        out.extend_from_slice(b",\"item\":");
        out.extend_from_slice(plain_json::item(&row.item).as_bytes());
        out.extend_from_slice(b"}\n");
    }
}

pub(super) fn items(items: &[Item], out: &mut Vec<u8>) {
    for item in items {
        out.extend_from_slice(plain_json::item(item).as_bytes());
        out.push(b'\n');
    }
}
