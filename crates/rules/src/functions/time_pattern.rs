//! Patterns of dates and times, as `parse_time` and `time_to_epoch` take them: letters that stand for
//! a field, repeated for its width, between text that stands for itself.

/// The most bytes of a pattern.
pub(super) const PATTERN_LEN_MAX_BYTES: usize = 256;
/// How deep optional sections may nest.
const OPTIONAL_DEPTH_MAX: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Field {
        letter: char,
        width: usize,
    },
    Text(String),
    /// A section in brackets, which may be missing when a text is read.
    Optional(Vec<Piece>),
}

/// Which letters there are, and whether brackets mean anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Joda-Time's, for writing.
    Joda,
    /// That of `java.time`, for reading.
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
/// In words, why the pattern cannot be used.
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
                    return Err(format!(
                        "more than {OPTIONAL_DEPTH_MAX} brackets in one another"
                    ));
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
                        "the letter {letter}, which is not known in a pattern"
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

/// What stands behind a quote, up to the next; two quotes are one, also by themselves.
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
    fn letters_text_and_quotes_are_told_apart() {
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
