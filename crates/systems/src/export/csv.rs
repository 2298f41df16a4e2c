//! Values as CSV (RFC 4180): a line for each.

use homeport_item::Value;

use super::PageOf;
use crate::fleet::samples;
use crate::plain_json;
use crate::time::UtcMillis;

const HEADER: &str = "system,device,at,name,value,unit\r\n";

/// Writes the header before the first line.
#[derive(Debug, Default)]
pub(super) struct CsvValues {
    has_begun: bool,
}

impl CsvValues {
    pub(super) fn header(&mut self, out: &mut Vec<u8>) {
        if !self.has_begun {
            self.has_begun = true;
            out.extend_from_slice(HEADER.as_bytes());
        }
    }

    pub(super) fn write(&mut self, page: &PageOf<'_>, out: &mut Vec<u8>) {
        self.header(out);
        for row in page.rows {
            let at = UtcMillis::new(row.at).to_string();
            samples(page.system, row, &mut |sample| {
                let fields = [
                    page.system.as_str(),
                    page.device,
                    &at,
                    sample.name,
                    &shown(sample.value),
                    sample.unit().unwrap_or_default(),
                ];
                line(&fields, out);
            });
        }
    }
}

/// A text as it is, and everything else as JSON.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::S(text) => text.clone(),
        value => plain_json::value(value),
    }
}

pub(super) fn line<S: AsRef<str>>(fields: &[S], out: &mut Vec<u8>) {
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(field.as_ref(), out);
    }
    out.extend_from_slice(b"\r\n");
}

/// A field in quotes where it needs them.
fn write(field: &str, out: &mut Vec<u8>) {
    if !field.contains([',', '"', '\r', '\n']) {
        out.extend_from_slice(field.as_bytes());
        return;
    }
    out.push(b'"');
    out.extend_from_slice(field.replace('"', "\"\"").as_bytes());
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let mut out = Vec::new();
        line(&["a", "b,c", "say \"hi\"", "two\nlines", ""], &mut out);
        let text = String::from_utf8(out).expect("text");
        assert_eq!(text, "a,\"b,c\",\"say \"\"hi\"\"\",\"two\nlines\",\r\n");
    }
}
