//! CSV (RFC 4180): the cells of a line, and the values of a device, one per line.

use std::borrow::Cow;

use homeport_item::Value;

use super::{CsvText, PageOf, visit_values};
use crate::plain_json;
use crate::time::UtcMillis;

const HEADER: &str = "system,device,at,name,value,unit\r\n";
/// A spreadsheet evaluates a cell that begins with one of these as a formula. The last four are the full-width
/// forms of the first, which some spreadsheets convert.
const FORMULA_STARTS: [char; 8] = [
    '=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
];
/// Some spreadsheets drop these at the start of a cell before they read it.
const SKIPPED_STARTS: [char; 3] = ['\t', '\r', '\n'];
/// Marks a cell as text.
const TEXT_MARK: u8 = b'\'';

/// Writes the header before the first line.
#[derive(Debug)]
pub(super) struct CsvValues {
    text: CsvText,
    has_begun: bool,
}

/// One cell. Numbers are never marked, not even negative ones.
pub(super) enum Cell<'a> {
    Text(Cow<'a, str>),
    Number(String),
}

impl CsvValues {
    pub(super) fn new(text: CsvText) -> Self {
        Self {
            text,
            has_begun: false,
        }
    }

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
            visit_values(page.system, row, &mut |sample| {
                let cells = [
                    page.system.as_str().into(),
                    page.device.into(),
                    at.as_str().into(),
                    sample.name.into(),
                    Cell::of(sample.value),
                    sample.unit().unwrap_or_default().into(),
                ];
                line(&cells, self.text, out);
            });
        }
    }
}

impl<'a> Cell<'a> {
    /// A text as it is; other values as JSON.
    pub(super) fn of(value: &'a Value) -> Self {
        match value {
            Value::S(text) => text.as_str().into(),
            Value::N(_) => Self::Number(plain_json::value(value)),
            value => Self::Text(plain_json::value(value).into()),
        }
    }

    fn write(&self, text: CsvText, out: &mut Vec<u8>) {
        let (cell, is_marked) = match self {
            Self::Text(cell) => (&**cell, is_formula(cell) && text == CsvText::Neutralised),
            Self::Number(cell) => (cell.as_str(), false),
        };
        let is_quoted = cell.contains([',', '"', '\r', '\n']);
        if is_quoted {
            out.push(b'"');
        }
        if is_marked {
            out.push(TEXT_MARK);
        }
        out.extend_from_slice(cell.replace('"', "\"\"").as_bytes());
        if is_quoted {
            out.push(b'"');
        }
    }
}

/// Whether a spreadsheet could evaluate a text as a formula, also after dropping what it begins with: white space,
/// control characters and a byte order mark.
fn is_formula(text: &str) -> bool {
    let is_dropped =
        |letter: char| letter.is_whitespace() || letter.is_control() || letter == '\u{feff}';
    text.starts_with(SKIPPED_STARTS)
        || text
            .trim_start_matches(is_dropped)
            .starts_with(FORMULA_STARTS)
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.into())
    }
}

pub(super) fn line(cells: &[Cell<'_>], text: CsvText, out: &mut Vec<u8>) {
    for (at, cell) in cells.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        cell.write(text, out);
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(cells: &[Cell<'_>], text: CsvText) -> String {
        let mut out = Vec::new();
        line(cells, text, &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn special_characters_are_quoted() {
        let cells = ["a", "b,c", "say \"hi\"", "two\nlines", ""].map(Cell::from);
        assert_eq!(
            written(&cells, CsvText::Neutralised),
            "a,\"b,c\",\"say \"\"hi\"\"\",\"two\nlines\",\r\n"
        );
    }

    #[test]
    fn texts_that_look_like_formulas_are_marked() {
        for (cell, neutralised) in [
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("\r=1", "\"'\r=1\""),
            ("\n=1", "\"'\n=1\""),
            ("=HYPERLINK(\"x\",1)", "\"'=HYPERLINK(\"\"x\"\",1)\""),
            (" =1", "' =1"),
            (" \u{a0}\u{feff}@x", "' \u{a0}\u{feff}@x"),
            ("\0=1", "'\0=1"),
            ("＝1", "'＝1"),
            ("＋1", "'＋1"),
            ("－1", "'－1"),
            (" ＠x", "' ＠x"),
            ("\"=1\"", "\"\"\"=1\"\"\""),
            (" a", " a"),
            ("a=1", "a=1"),
            ("", ""),
        ] {
            let expected = format!("{neutralised}\r\n");
            assert_eq!(written(&[cell.into()], CsvText::Neutralised), expected);
            let raw = written(&[cell.into()], CsvText::Raw);
            assert_eq!(raw, expected.replacen('\'', "", 1), "{cell:?}");
        }
        let number = Value::N("-5.2".parse().expect("a number"));
        let cells = [Cell::of(&number)];
        assert_eq!(written(&cells, CsvText::Neutralised), "-5.2\r\n");
        let text = Value::S("-5.2".to_owned());
        let cells = [Cell::of(&text)];
        assert_eq!(written(&cells, CsvText::Neutralised), "'-5.2\r\n");
    }
}
