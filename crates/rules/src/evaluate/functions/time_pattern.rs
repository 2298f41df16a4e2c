//! The date and time patterns of `parse_time` and `time_to_epoch`: letters for fields, repeated for
//! their width, and literal text between them.

/// Maximum length of a pattern.
pub(super) const PATTERN_LEN_MAX_BYTES: usize = 256;
/// Maximum nesting of optional sections.
const OPTIONAL_DEPTH_MAX: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Field {
        letter: char,
        width: usize,
    },
    Text(String),
    /// A section in brackets, which is optional in a parsed text.
    Optional(Vec<Piece>),
}

/// The supported letters, and whether brackets are special.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Joda-Time's patterns, for formatting.
    Joda,
    /// Patterns of `java.time`, for parsing.
    Java,
}

impl Dialect {
    fn letters(self) -> &'static str {
        match self {
            Self::Joda => "GCYxweEyDMdaKhHkmsSzZ",
            Self::Java => "GuyMLdDEaKhHkmsSnVzOXxZ",
        }
    }
}

/// # Errors
/// A message that says why the pattern is invalid.
pub(super) fn parse(pattern: &str, dialect: Dialect) -> Result<Vec<Piece>, String> {
    if pattern.len() > PATTERN_LEN_MAX_BYTES {
        return Err(format!(
            "a pattern of more than {PATTERN_LEN_MAX_BYTES} bytes"
        ));
    }
    let mut open: Vec<Vec<Piece>> = vec![Vec::new()];
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        let piece = match character {
            '\'' => Piece::Text(quoted(&mut characters)?),
            '[' if dialect == Dialect::Java => {
                if open.len() > OPTIONAL_DEPTH_MAX {
                    return Err(format!("more than {OPTIONAL_DEPTH_MAX} nested brackets"));
                }
                open.push(Vec::new());
                continue;
            }
            ']' if dialect == Dialect::Java => match (open.pop(), open.is_empty()) {
                (Some(section), false) => Piece::Optional(section),
                _ => return Err("a bracket that was not opened".to_owned()),
            },
            letter if letter.is_ascii_alphabetic() => {
                if !dialect.letters().contains(letter) {
                    return Err(format!(
                        "the letter {letter}, which is invalid in a pattern"
                    ));
                }
                let mut width = 1;
                while characters.next_if_eq(&letter).is_some() {
                    width += 1;
                }
                Piece::Field { letter, width }
            }
            other => Piece::Text(other.to_string()),
        };
        if let Some(section) = open.last_mut() {
            section.push(piece);
        }
    }
    match (open.pop(), open.is_empty()) {
        (Some(pieces), true) => Ok(pieces),
        _ => Err("a bracket that is not closed".to_owned()),
    }
}

/// The text up to the closing quote. Two quotes stand for one, also outside of quoted text.
fn quoted(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<String, String> {
    if characters.next_if_eq(&'\'').is_some() {
        return Ok("'".to_owned());
    }
    let mut text = String::new();
    loop {
        match characters.next() {
            Some('\'') if characters.next_if_eq(&'\'').is_some() => text.push('\''),
            Some('\'') => return Ok(text),
            Some(other) => text.push(other),
            None => return Err("a quote that is not closed".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_text_and_quotes_are_distinguished() {
        let field = |letter, width| Piece::Field { letter, width };
        assert_eq!(
            parse("yyyy'T''s'H", Dialect::Joda),
            Ok(vec![
                field('y', 4),
                Piece::Text("T's".to_owned()),
                field('H', 1)
            ])
        );
        assert_eq!(
            parse("m[.S]", Dialect::Java),
            Ok(vec![
                field('m', 1),
                Piece::Optional(vec![Piece::Text(".".to_owned()), field('S', 1)])
            ])
        );
        for bad in ["'x", "b", "m]", "[m"] {
            assert!(parse(bad, Dialect::Java).is_err(), "{bad}");
        }
    }
}
