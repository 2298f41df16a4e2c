//! Why a statement or a template is invalid, and where.

use std::fmt;

/// Maximum number of characters of a line in an error message.
const SHOWN_CHARS_MAX: usize = 100;

/// The error for an invalid statement or template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The byte offset in the text.
    pub offset: usize,
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    pub found: String,
    pub expected: String,
    /// The line of the text, or a part of it, and the number of its characters before the position.
    shown: String,
    shown_before: usize,
}

impl SyntaxError {
    pub(crate) fn new(
        text: &str,
        offset: usize,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        let place = TextPosition::of(text, offset);
        let before_chars = place.column - 1;
        let skipped = before_chars.saturating_sub(SHOWN_CHARS_MAX / 2);
        Self {
            offset,
            line: place.line,
            column: place.column,
            found: found.into(),
            expected: expected.into(),
            shown: place
                .line_text
                .chars()
                .skip(skipped)
                .take(SHOWN_CHARS_MAX)
                .map(|character| {
                    if character.is_control() {
                        ' '
                    } else {
                        character
                    }
                })
                .collect(),
            shown_before: before_chars - skipped,
        }
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            line,
            column,
            found,
            expected,
            ..
        } = self;
        writeln!(
            formatter,
            "line {line}, column {column}: expected {expected}, found {found}"
        )?;
        writeln!(formatter, "  {}", self.shown)?;
        write!(
            formatter,
            "  {:>width$}",
            "^",
            width = self.shown_before + 1
        )
    }
}

impl std::error::Error for SyntaxError {}

/// A position in a text as line and column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextPosition<'a> {
    pub(crate) line: usize,
    pub(crate) column: usize,
    line_text: &'a str,
}

impl<'a> TextPosition<'a> {
    /// `offset` is at the start of a character or at the end.
    pub(crate) fn of(text: &'a str, offset: usize) -> Self {
        let (before, after) = text.split_at(offset);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line_end = after.find('\n').map_or(text.len(), |at| offset + at);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            line_text: &text[line_start..line_end],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_shows_line_and_position() {
        let text = "SELECT é,\n  a b FROM 'x'";
        let error = SyntaxError::new(text, text.find('b').expect("a place"), "FROM", "`b`");
        assert_eq!((error.line, error.column), (2, 5));
        assert_eq!(
            error.to_string(),
            "line 2, column 5: expected FROM, found `b`\n    a b FROM 'x'\n      ^"
        );
    }

    #[test]
    fn long_lines_are_truncated_around_the_position() {
        let text = format!("{}!{}", "a".repeat(1000), "b".repeat(1000));
        let shown = SyntaxError::new(&text, 1000, "nothing", "`!`").to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[1].len(), SHOWN_CHARS_MAX + 2);
        assert_eq!(lines[1].find('!'), lines[2].find('^'));
    }
}
