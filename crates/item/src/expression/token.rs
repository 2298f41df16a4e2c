//! Splits the text of an expression into tokens.

/// A token with its position in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    pub(super) text: &'a str,
    pub(super) start: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A plain name: an attribute, a function or a keyword.
    Word,
    /// `#name`
    NamePlaceholder,
    /// `:name`
    ValuePlaceholder,
    Digits,
    /// A comparator, bracket or other sign of the language.
    Sign,
    /// A character that is invalid in every expression.
    Unknown,
    End,
}

impl Token<'_> {
    pub(super) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Whether this is the keyword, ignoring case.
    pub(super) fn is_keyword(&self, keyword: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(keyword)
    }

    pub(super) fn is_sign(&self, sign: &str) -> bool {
        self.kind == TokenKind::Sign && self.text == sign
    }
}

/// Splits `text` into tokens. The last one is always `End`.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut start = 0;
    while let Some(first) = text[start..].chars().next() {
        if matches!(first, ' ' | '\t' | '\r' | '\n') {
            start += 1;
            continue;
        }
        let (kind, len) = measure(&text[start..], first);
        tokens.push(Token {
            kind,
            text: &text[start..start + len],
            start,
        });
        start += len;
    }
    tokens.push(Token {
        kind: TokenKind::End,
        text: "",
        start,
    });
    tokens
}

/// The kind and the byte length of the token at the start of `rest`.
fn measure(rest: &str, first: char) -> (TokenKind, usize) {
    let run = |from: usize, accept: fn(u8) -> bool| {
        let bytes = &rest.as_bytes()[from..];
        from + bytes.iter().take_while(|byte| accept(**byte)).count()
    };
    match first {
        'a'..='z' | 'A'..='Z' => (TokenKind::Word, run(1, is_word_byte)),
        '0'..='9' => (TokenKind::Digits, run(1, |byte| byte.is_ascii_digit())),
        '#' | ':' => match run(1, is_word_byte) {
            1 => (TokenKind::Unknown, 1),
            len if first == '#' => (TokenKind::NamePlaceholder, len),
            len => (TokenKind::ValuePlaceholder, len),
        },
        '<' if rest.starts_with("<>") || rest.starts_with("<=") => (TokenKind::Sign, 2),
        '>' if rest.starts_with(">=") => (TokenKind::Sign, 2),
        '<' | '>' | '=' | '(' | ')' | '[' | ']' | ',' | '.' | '+' | '-' => (TokenKind::Sign, 1),
        other => (TokenKind::Unknown, other.len_utf8()),
    }
}

/// Whether `byte` is valid within a name or placeholder.
pub(super) fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &[&str]) {
        let found: Vec<_> = tokens(text).iter().map(|token| token.text).collect();
        assert_eq!(found.split_last(), Some((&"", expect)), "{text}");
    }

    #[test]
    fn text_splits_where_character_kind_changes() {
        check("", &[]);
        check(" \t\r\n", &[]);
        check("a=b", &["a", "=", "b"]);
        check(
            "a<>b<=c>=d<e>f",
            &["a", "<>", "b", "<=", "c", ">=", "d", "<", "e", ">", "f"],
        );
        check("(a)between(b)", &["(", "a", ")", "between", "(", "b", ")"]);
        check("#a.b[12]", &["#a", ".", "b", "[", "12", "]"]);
        check("#4g :_x #", &["#4g", ":_x", "#"]);
        check("_a", &["_", "a"]);
        check("ü!=", &["ü", "!", "="]);
    }
}
