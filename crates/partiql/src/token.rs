//! Splits a statement's text into tokens with positions.

use std::fmt;

use homeport_item::{Number, NumberError};

use crate::error::ParseError;

/// Maximum number of characters of a statement.
pub const STATEMENT_MAX_CHARS: usize = 8192;

/// A position in the text: line and column, both from 1, and the number of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    pub line: usize,
    pub column: usize,
    pub length: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}", self.line, self.column, self.length)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    /// A keyword or a bare name.
    Word(String),
    /// A name in double quotes.
    Name(String),
    /// A string in single quotes.
    Text(String),
    Number(String),
    Sign(&'static str),
    End,
}

#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub(crate) token: Token,
    pub(crate) at: Position,
}

/// Longer signs first, so that none is mistaken for its prefix.
const SIGNS: [&str; 23] = [
    "<<", ">>", "<>", "!=", "<=", ">=", "||", "<", ">", "=", "(", ")", "[", "]", "{", "}", ",",
    ".", ":", ";", "?", "*", "+",
];
const MINUS: &str = "-";

pub(crate) fn is_word(text: char) -> bool {
    text.is_alphanumeric() || matches!(text, '_' | '$')
}

/// Splits `text` into tokens. The last one is always the end.
pub(crate) fn tokens(text: &str) -> Result<Vec<Placed>, ParseError> {
    if text.chars().count() > STATEMENT_MAX_CHARS {
        return Err(ParseError::syntax(
            "Statement is too long",
            Position::default(),
        ));
    }
    let mut lexer = Lexer {
        rest: text,
        line: 1,
        column: 1,
    };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blanks()?;
        let (line, column) = (lexer.line, lexer.column);
        let before = lexer.rest;
        let token = lexer.token()?;
        let length = before[..before.len() - lexer.rest.len()].chars().count();
        let at = Position {
            line,
            column,
            length,
        };
        let is_end = token == Token::End;
        tokens.push(Placed { token, at });
        if is_end {
            return Ok(tokens);
        }
    }
}

/// The error for an invalid token. DynamoDB's message contains no details.
fn unreadable(at: Position) -> ParseError {
    ParseError::syntax("", at)
}

struct Lexer<'t> {
    rest: &'t str,
    line: usize,
    column: usize,
}

impl Lexer<'_> {
    fn here(&self) -> Position {
        Position {
            line: self.line,
            column: self.column,
            length: 1,
        }
    }

    fn take(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let character = characters.next()?;
        self.rest = characters.as_str();
        if character == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(character)
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(next) = self.rest.chars().next().filter(|next| accept(*next)) {
            taken.push(next);
            self.take();
        }
        taken
    }

    /// Skips white space and comments.
    fn skip_blanks(&mut self) -> Result<(), ParseError> {
        loop {
            self.take_while(char::is_whitespace);
            if self.rest.starts_with("--") {
                self.take_while(|character| character != '\n');
            } else if self.rest.starts_with("/*") {
                let start = self.here();
                while !self.rest.starts_with("*/") {
                    if self.take().is_none() {
                        return Err(unreadable(start));
                    }
                }
                self.take();
                self.take();
            } else {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<Token, ParseError> {
        let start = self.here();
        let Some(first) = self.rest.chars().next() else {
            return Ok(Token::End);
        };
        if first == '\'' {
            return self.quoted(first).map(Token::Text);
        }
        if first == '"' {
            return self.quoted(first).map(Token::Name);
        }
        let starts_fraction =
            first == '.' && self.rest[1..].starts_with(|next: char| next.is_ascii_digit());
        if first.is_ascii_digit() || starts_fraction {
            return self.number();
        }
        if is_word(first) {
            return Ok(Token::Word(self.take_while(is_word)));
        }
        let sign = SIGNS
            .iter()
            .chain([&MINUS])
            .find(|sign| self.rest.starts_with(**sign));
        let Some(sign) = sign else {
            return Err(unreadable(start));
        };
        for _ in 0..sign.len() {
            self.take();
        }
        Ok(Token::Sign(sign))
    }

    /// Reads a quoted text, in which quotes are doubled.
    fn quoted(&mut self, quote: char) -> Result<String, ParseError> {
        let start = self.here();
        self.take();
        let mut content = String::new();
        loop {
            match self.take() {
                None => return Err(unreadable(start)),
                Some(next) if next == quote => {
                    if !self.rest.starts_with(quote) {
                        return Ok(content);
                    }
                    self.take();
                    content.push(quote);
                }
                Some(next) => content.push(next),
            }
        }
    }

    fn number(&mut self) -> Result<Token, ParseError> {
        let start = self.here();
        let digit = |character: char| character.is_ascii_digit();
        let mut text = self.take_while(digit);
        if self.rest.starts_with('.') {
            text.extend(self.take());
            text.push_str(&self.take_while(digit));
        }
        if self.rest.starts_with(['e', 'E']) {
            text.extend(self.take());
            if self.rest.starts_with(['+', '-']) {
                text.extend(self.take());
            }
            text.push_str(&self.take_while(digit));
        }
        if self.rest.starts_with(is_word) {
            return Err(unreadable(start));
        }
        // The value's parser checks the range, because its message contains the path.
        if matches!(
            Number::parse_legacy(&text),
            Err(NumberError::NotANumber(_) | NumberError::Empty)
        ) {
            return Err(unreadable(start));
        }
        Ok(Token::Number(text))
    }
}
