//! Splits the text of a statement into tokens, one at a time, because in a template the text after
//! an expression must not be tokenized.

/// A token with its position in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: TokenKind,
    pub(crate) text: &'a str,
    pub(crate) start: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A name, a function or a keyword.
    Word,
    /// A name in back-quotes.
    QuotedName,
    /// A text in single or double quotes, in which the quote is doubled.
    Text,
    Number,
    /// `@name`
    Variable,
    Sign,
    /// A text or quoted name without a closing quote.
    Unterminated,
    /// A character that is invalid in every statement.
    Unknown,
    End,
}

const SIGNS_OF_TWO: [&str; 4] = ["<>", "<=", ">=", "!="];
const SIGNS: &str = "(){}[],.:;=<>+-*/%";

impl<'a> Token<'a> {
    pub(crate) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Whether this is the keyword, ignoring case.
    pub(crate) fn is_keyword(&self, keyword: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(keyword)
    }

    pub(crate) fn is_sign(&self, sign: &str) -> bool {
        self.kind == TokenKind::Sign && self.text == sign
    }

    /// The text between the quotes.
    pub(crate) fn unquoted(&self) -> String {
        let Some(quote) = self.text.chars().next() else {
            return String::new();
        };
        let inner = &self.text[1..self.text.len().saturating_sub(1).max(1)];
        inner.replace(&format!("{quote}{quote}"), &quote.to_string())
    }

    /// The token's name in messages.
    pub(crate) fn describe(&self) -> String {
        const SHOWN_CHARS_MAX: usize = 40;
        match self.kind {
            TokenKind::End => "the end of the text".to_owned(),
            TokenKind::Unterminated => "a quote that is not closed".to_owned(),
            _ if self.text.chars().count() > SHOWN_CHARS_MAX => {
                let beginning: String = self.text.chars().take(SHOWN_CHARS_MAX).collect();
                format!("`{beginning}…`")
            }
            _ => format!("`{}`", self.text),
        }
    }
}

/// The next token at or after `start`.
pub(crate) fn next_token(text: &str, start: usize) -> Token<'_> {
    let start = skip_blank(text, start);
    let rest = &text[start..];
    let Some(first) = rest.chars().next() else {
        return Token {
            kind: TokenKind::End,
            text: "",
            start,
        };
    };
    let (kind, len) = measure(rest, first);
    Token {
        kind,
        text: &rest[..len],
        start,
    }
}

/// Skips white space and comments, which extend from `--` to the end of the line.
///
/// DIFFERENCE: AWS IoT has no comments. Therefore `5--3` is 5 here and 8 there.
fn skip_blank(text: &str, mut start: usize) -> usize {
    loop {
        let rest = &text[start..];
        let trimmed = rest.trim_start();
        start += rest.len() - trimmed.len();
        if !trimmed.starts_with("--") {
            return start;
        }
        start += trimmed.find('\n').unwrap_or(trimmed.len());
    }
}

fn measure(rest: &str, first: char) -> (TokenKind, usize) {
    match first {
        '\'' | '"' => quoted(rest, first, TokenKind::Text),
        '`' => quoted(rest, first, TokenKind::QuotedName),
        '0'..='9' => (TokenKind::Number, number_len(rest)),
        '@' => match word_len(&rest[1..]) {
            0 => (TokenKind::Unknown, 1),
            len => (TokenKind::Variable, 1 + len),
        },
        first if is_word(first) => (TokenKind::Word, word_len(rest)),
        _ if SIGNS_OF_TWO.iter().any(|sign| rest.starts_with(sign)) => (TokenKind::Sign, 2),
        first if SIGNS.contains(first) => (TokenKind::Sign, 1),
        other => (TokenKind::Unknown, other.len_utf8()),
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$')
}

fn word_len(rest: &str) -> usize {
    rest.find(|character| !is_word(character))
        .unwrap_or(rest.len())
}

fn quoted(rest: &str, quote: char, kind: TokenKind) -> (TokenKind, usize) {
    let mut at = 1;
    while let Some(found) = rest[at..].find(quote) {
        at += found + 1;
        if !rest[at..].starts_with(quote) {
            return (kind, at);
        }
        at += 1;
    }
    (TokenKind::Unterminated, rest.len())
}

/// The length of a number: digits, a fraction, an exponent. A point without digits after it belongs
/// to what follows.
fn number_len(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let digits = |from: usize| {
        bytes[from.min(bytes.len())..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let mut len = digits(0);
    if bytes.get(len) == Some(&b'.') && digits(len + 1) > 0 {
        len += 1 + digits(len + 1);
    }
    if matches!(bytes.get(len), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(len + 1), Some(b'+' | b'-')));
        let exponent = digits(len + 1 + sign);
        if exponent > 0 {
            len += 1 + sign + exponent;
        }
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<&str> {
        let mut start = 0;
        let mut found = Vec::new();
        loop {
            let token = next_token(text, start);
            if token.kind == TokenKind::End {
                return found;
            }
            found.push(token.text);
            start = token.end();
        }
    }

    #[test]
    fn comments_and_white_space_are_skipped() {
        assert_eq!(tokens("a -- b\n\t, * --"), ["a", ",", "*"]);
        assert_eq!(tokens("--"), [""; 0]);
    }

    #[test]
    fn doubled_quotes_stand_for_one() {
        assert_eq!(tokens("'it''s' \"x\""), ["'it''s'", "\"x\""]);
        assert_eq!(next_token("'it''s'", 0).unquoted(), "it's");
        assert_eq!(next_token("''", 0).unquoted(), "");
        assert_eq!(next_token("'a''", 0).kind, TokenKind::Unterminated);
        assert_eq!(next_token("'", 0).kind, TokenKind::Unterminated);
    }

    #[test]
    fn numbers_end_at_the_first_invalid_character() {
        assert_eq!(tokens("1.5E-3"), ["1.5E-3"]);
        assert_eq!(tokens("1.x"), ["1", ".", "x"]);
        assert_eq!(tokens("2e"), ["2", "e"]);
        assert_eq!(tokens("a<>-1"), ["a", "<>", "-", "1"]);
    }
}
