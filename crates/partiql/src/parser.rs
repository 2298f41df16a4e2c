//! Shared by all parts of the parser: the tokens, the parameters and the limits.

use homeport_item::Value;

use crate::error::ParseError;
use crate::token::{Placed, Position, Token};

/// Maximum nesting of parentheses, lists and maps.
pub const NESTING_MAX: usize = 64;
/// Maximum number of operators and functions in one condition.
pub const OPERATORS_MAX: usize = 300;

/// Keywords, which are names only in quotes.
const KEYWORDS: [&str; 41] = [
    "SELECT",
    "FROM",
    "WHERE",
    "INSERT",
    "INTO",
    "VALUE",
    "VALUES",
    "UPDATE",
    "DELETE",
    "SET",
    "REMOVE",
    "ORDER",
    "BY",
    "GROUP",
    "HAVING",
    "LIMIT",
    "AS",
    "AT",
    "ON",
    "RETURNING",
    "UNION",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "ASC",
    "DESC",
    "EXISTS",
    "TRUE",
    "FALSE",
    "NULL",
    "MISSING",
    "AND",
    "OR",
    "NOT",
    "IS",
    "IN",
    "LIKE",
    "BETWEEN",
    "ESCAPE",
];
/// The keywords that are operators.
const OPERATOR_WORDS: [&str; 7] = ["AND", "OR", "NOT", "IS", "IN", "LIKE", "BETWEEN"];

pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS
        .iter()
        .any(|keyword| keyword.eq_ignore_ascii_case(word))
}

pub(crate) struct Parser<'p> {
    tokens: Vec<Placed>,
    next: usize,
    parameters: &'p [Value],
    /// The number of parameters used so far.
    pub(crate) used_parameters: usize,
    depth: usize,
    operators: usize,
    /// The path of the current value within its outermost value, as messages show it.
    pub(crate) value_path: Vec<String>,
}

impl<'p> Parser<'p> {
    pub(crate) fn new(tokens: Vec<Placed>, parameters: &'p [Value]) -> Self {
        Self {
            tokens,
            next: 0,
            parameters,
            used_parameters: 0,
            depth: 0,
            operators: 0,
            value_path: Vec::new(),
        }
    }

    pub(crate) fn peek(&self) -> &Token {
        self.peek_at(0)
    }

    /// The token `ahead` tokens further.
    pub(crate) fn peek_at(&self, ahead: usize) -> &Token {
        let at = self.next + ahead;
        self.tokens
            .get(at)
            .map_or(&Token::End, |placed| &placed.token)
    }

    /// The position of the next token.
    pub(crate) fn here(&self) -> Position {
        let last = self.tokens.last();
        let placed = self.tokens.get(self.next).or(last);
        placed.map_or(Position::default(), |placed| placed.at)
    }

    pub(crate) fn advance(&mut self) -> Token {
        let token = self.peek().clone();
        self.next += 1;
        token
    }

    pub(crate) fn at_word(&self, word: &str) -> bool {
        self.word_at(0, word)
    }

    pub(crate) fn word_at(&self, ahead: usize, word: &str) -> bool {
        matches!(self.peek_at(ahead), Token::Word(found) if found.eq_ignore_ascii_case(word))
    }

    pub(crate) fn take_word(&mut self, word: &str) -> bool {
        let found = self.at_word(word);
        self.next += usize::from(found);
        found
    }

    pub(crate) fn at_sign(&self, sign: &str) -> bool {
        self.sign_at(0, sign)
    }

    pub(crate) fn sign_at(&self, ahead: usize, sign: &str) -> bool {
        matches!(self.peek_at(ahead), Token::Sign(found) if *found == sign)
    }

    pub(crate) fn take_sign(&mut self, sign: &str) -> bool {
        let found = self.at_sign(sign);
        self.next += usize::from(found);
        found
    }

    pub(crate) fn expect_word(&mut self, word: &str) -> Result<(), ParseError> {
        if self.take_word(word) {
            return Ok(());
        }
        Err(self.syntax(format!("Expected {word} keyword")))
    }

    pub(crate) fn expect_sign(&mut self, sign: &str, name: &str) -> Result<(), ParseError> {
        if self.take_sign(sign) {
            return Ok(());
        }
        Err(self.syntax(format!("Expected {name}")))
    }

    pub(crate) fn syntax(&self, text: impl Into<String>) -> ParseError {
        ParseError::syntax(text, self.here())
    }

    pub(crate) fn unsupported(&self, text: impl Into<String>) -> ParseError {
        ParseError::unsupported(text, self.here())
    }

    /// The error for a token in place of a term.
    pub(crate) fn no_term(&self) -> ParseError {
        match self.peek() {
            Token::Word(word)
                if OPERATOR_WORDS
                    .iter()
                    .any(|operator| operator.eq_ignore_ascii_case(word)) =>
            {
                self.syntax("Unexpected operator")
            }
            Token::Word(word) if is_keyword(word) => self.syntax("Unexpected keyword"),
            _ => self.syntax("Unexpected term"),
        }
    }

    /// Calls `read` one nesting level deeper.
    pub(crate) fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        if self.depth >= NESTING_MAX {
            return Err(self.syntax("Statement is nested too deeply"));
        }
        self.depth += 1;
        let read = read(self)?;
        self.depth -= 1;
        Ok(read)
    }

    pub(crate) fn count_operator(&mut self) -> Result<(), ParseError> {
        self.operators += 1;
        if self.operators > OPERATORS_MAX {
            return Err(self.unsupported(format!(
                "The expression contains too many operators; operator count: {}",
                self.operators
            )));
        }
        Ok(())
    }

    /// The parameter for a question mark. Missing parameters are reported after the whole statement
    /// is parsed.
    pub(crate) fn parameter(&mut self) -> Value {
        let value = self.parameters.get(self.used_parameters).cloned();
        self.used_parameters += 1;
        value.unwrap_or(Value::Null)
    }

    /// The number of supplied parameters.
    pub(crate) fn supplied(&self) -> usize {
        self.parameters.len()
    }
}
