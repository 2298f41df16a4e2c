//! Shared by the parsers of all kinds of expressions: the tokens, the limits, document paths, and
//! the order in which DynamoDB reports mistakes.
//!
//! A syntax error stops the parser at once. Any other mistake is recorded and parsing continues
//! with a harmless substitute, because DynamoDB may report a later mistake instead.

use super::error::{ExpressionError, ExpressionKind, ExpressionProblem};
use super::path::Path;
use super::placeholders::Placeholders;
use super::reserved::is_reserved;
use super::token::{Token, TokenKind, tokens};
use crate::value::Value;

/// Maximum length of an expression's text.
pub const EXPRESSION_MAX_BYTES: usize = 4096;
/// Maximum number of operators and functions in one expression.
pub const OPERATORS_MAX: usize = 300;
/// Maximum nesting of functions and parentheses within an operand.
// DIFFERENCE: DynamoDB documents no such limit. It protects the stack from malicious texts. Nested
// conditions are parsed without recursion, so only `OPERATORS_MAX` limits them.
pub const NESTING_MAX: usize = 100;
/// Maximum number of elements of a document path, including the attribute's name.
pub const PATH_DEPTH_MAX: usize = 32;
/// Maximum list index in a path.
const LIST_INDEX_MAX: u32 = u32::MAX - 1;

/// Words that the parser never reads as attribute names.
const KEYWORDS: [&str; 9] = [
    "ADD", "AND", "BETWEEN", "DELETE", "IN", "NOT", "OR", "REMOVE", "SET",
];

/// The order in which DynamoDB reports the mistakes of one expression: the lowest is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    Operators,
    Parentheses,
    UnknownFunction,
    MisusedFunction,
    Reserved,
    Section,
    /// A mistake in the condition with this number; an update counts as one condition.
    Within(usize, Mistake),
}

/// The order of the mistakes within one condition or update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mistake {
    Undefined,
    Overlap,
    Conflict,
    ActionType,
    OperandCount,
    Distinct,
    OperandType,
}

/// The mistake to report among those found so far.
#[derive(Debug, Default)]
pub(super) struct Findings(Option<(Rank, ExpressionProblem)>);

impl Findings {
    /// Records `problem` unless one with a lower rank is already recorded.
    pub(super) fn note(&mut self, rank: Rank, problem: ExpressionProblem) {
        if self.0.as_ref().is_none_or(|(known, _)| rank < *known) {
            self.0 = Some((rank, problem));
        }
    }

    pub(super) fn into_result(self, kind: ExpressionKind) -> Result<(), ExpressionError> {
        match self.0 {
            Some((_, problem)) => Err(ExpressionError::Invalid { kind, problem }),
            None => Ok(()),
        }
    }
}

pub(super) struct Parser<'a> {
    kind: ExpressionKind,
    text: &'a str,
    tokens: Vec<Token<'a>>,
    at: usize,
    placeholders: &'a mut Placeholders,
    findings: Findings,
    operators: usize,
    nesting: usize,
    /// The number of complete conditions, which is also the index of the current one.
    conditions: usize,
}

impl<'a> Parser<'a> {
    /// Starts parsing `text`, if its length is valid.
    pub(super) fn new(
        kind: ExpressionKind,
        text: &'a str,
        placeholders: &'a mut Placeholders,
    ) -> Result<Self, ExpressionError> {
        let invalid = |problem| Err(ExpressionError::Invalid { kind, problem });
        if text.len() > EXPRESSION_MAX_BYTES {
            return invalid(match kind {
                ExpressionKind::Update => ExpressionProblem::UpdateTooLong,
                _ => ExpressionProblem::TooLong(text.len()),
            });
        }
        let tokens = tokens(text);
        if tokens.len() == 1 {
            return invalid(ExpressionProblem::Empty);
        }
        Ok(Self {
            kind,
            text,
            tokens,
            at: 0,
            placeholders,
            findings: Findings::default(),
            operators: 0,
            nesting: 0,
            conditions: 0,
        })
    }

    /// Finishes parsing: fails on remaining tokens or a recorded mistake.
    pub(super) fn finish(mut self) -> Result<(), ExpressionError> {
        if self.peek().kind != TokenKind::End {
            return Err(self.syntax_error());
        }
        if self.operators > OPERATORS_MAX {
            self.note(
                Rank::Operators,
                ExpressionProblem::TooManyOperators(self.operators),
            );
        }
        self.findings.into_result(self.kind)
    }

    pub(super) fn note(&mut self, rank: Rank, problem: ExpressionProblem) {
        self.findings.note(rank, problem);
    }

    /// Records a mistake in the current condition.
    pub(super) fn note_within(&mut self, mistake: Mistake, problem: ExpressionProblem) {
        self.note(Rank::Within(self.conditions, mistake), problem);
    }

    pub(super) fn findings(&mut self) -> &mut Findings {
        &mut self.findings
    }

    pub(super) fn condition_ends(&mut self) {
        self.conditions += 1;
    }

    pub(super) fn count_operator(&mut self) {
        self.operators += 1;
    }

    pub(super) fn peek(&self) -> Token<'a> {
        // The parser never advances past the end token, so there is always a token.
        self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    pub(super) fn peek_second(&self) -> Token<'a> {
        self.tokens[(self.at + 1).min(self.tokens.len() - 1)]
    }

    pub(super) fn advance(&mut self) -> Token<'a> {
        let token = self.peek();
        if token.kind != TokenKind::End {
            self.at += 1;
        }
        token
    }

    pub(super) fn take_sign(&mut self, sign: &str) -> bool {
        let found = self.peek().is_sign(sign);
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn take_keyword(&mut self, keyword: &str) -> bool {
        let found = self.peek().is_keyword(keyword);
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn expect_sign(&mut self, sign: &str) -> Result<(), ExpressionError> {
        if self.take_sign(sign) {
            Ok(())
        } else {
            Err(self.syntax_error())
        }
    }

    /// A syntax error at the next token.
    pub(super) fn syntax_error(&self) -> ExpressionError {
        let token = self.peek();
        let before = self.at.checked_sub(1).map(|at| self.tokens[at]);
        let start = before.map_or(token.start, |before| before.start);
        let end = match (token.kind, before) {
            (TokenKind::End, Some(before)) => before.end(),
            _ => self.peek_second().end(),
        };
        // The end of the text is not a visible token: leave out what follows the last one.
        let near = self.text[start..end].trim_end();
        let token = match token.kind {
            TokenKind::End => "<EOF>",
            _ => token.text,
        };
        ExpressionError::Invalid {
            kind: self.kind,
            problem: ExpressionProblem::Syntax {
                token: token.to_owned(),
                near: near.to_owned(),
            },
        }
    }

    /// Calls `read` one nesting level deeper.
    pub(super) fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, ExpressionError>,
    ) -> Result<T, ExpressionError> {
        if self.nesting == NESTING_MAX {
            return Err(ExpressionError::Invalid {
                kind: self.kind,
                problem: ExpressionProblem::TooDeep(NESTING_MAX),
            });
        }
        self.nesting += 1;
        let outcome = read(self);
        self.nesting -= 1;
        outcome
    }

    /// Parses a document path.
    pub(super) fn path(&mut self) -> Result<Path, ExpressionError> {
        let name = self.name()?;
        self.path_below(Path::new(name))
    }

    /// Parses the members and elements that follow `path`.
    pub(super) fn path_below(&mut self, mut path: Path) -> Result<Path, ExpressionError> {
        loop {
            if self.take_sign(".") {
                path = path.member(self.name()?);
            } else if self.take_sign("[") {
                path = path.element(self.index()?);
                self.expect_sign("]")?;
            } else {
                break;
            }
        }
        let depth = 1 + path.nested().len();
        if depth > PATH_DEPTH_MAX {
            self.note_within(Mistake::Undefined, ExpressionProblem::PathTooDeep(depth));
        }
        Ok(path)
    }

    /// Parses one name of a path, which may be a placeholder.
    fn name(&mut self) -> Result<String, ExpressionError> {
        let token = self.peek();
        match token.kind {
            TokenKind::Word if !is_keyword(token) => {
                self.advance();
                if is_reserved(token.text) {
                    let problem = ExpressionProblem::ReservedKeyword(token.text.to_owned());
                    self.note(Rank::Reserved, problem);
                }
                Ok(token.text.to_owned())
            }
            TokenKind::NamePlaceholder => {
                self.advance();
                if let Some(name) = self.placeholders.name(token.text) {
                    return Ok(name.to_owned());
                }
                let problem = ExpressionProblem::UndefinedName(token.text.to_owned());
                self.note_within(Mistake::Undefined, problem);
                Ok(token.text.to_owned())
            }
            _ => Err(self.syntax_error()),
        }
    }

    fn index(&mut self) -> Result<u32, ExpressionError> {
        let token = self.peek();
        let zero_leads = token.text.len() > 1 && token.text.starts_with('0');
        if token.kind != TokenKind::Digits || zero_leads {
            return Err(self.syntax_error());
        }
        self.advance();
        match token.text.parse() {
            Ok(index) if index <= LIST_INDEX_MAX => Ok(index),
            _ => {
                let problem = ExpressionProblem::ListIndex(token.text.to_owned());
                self.note(Rank::Reserved, problem);
                Ok(0)
            }
        }
    }

    /// Parses the placeholder of a value.
    pub(super) fn value(&mut self) -> Result<Value, ExpressionError> {
        let token = self.peek();
        if token.kind != TokenKind::ValuePlaceholder {
            return Err(self.syntax_error());
        }
        self.advance();
        if let Some(value) = self.placeholders.value(token.text) {
            return Ok(value.clone());
        }
        let problem = ExpressionProblem::UndefinedValue(token.text.to_owned());
        self.note_within(Mistake::Undefined, problem);
        Ok(Value::Null)
    }

    /// Whether a function call follows.
    pub(super) fn at_call(&self) -> bool {
        let token = self.peek();
        token.kind == TokenKind::Word && self.peek_second().is_sign("(") && !is_keyword(token)
    }

    /// Parses a comma-separated list and the closing parenthesis.
    pub(super) fn arguments<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T, ExpressionError>,
    ) -> Result<Vec<T>, ExpressionError> {
        let mut arguments = vec![read(self)?];
        while self.take_sign(",") {
            arguments.push(read(self)?);
        }
        self.expect_sign(")")?;
        Ok(arguments)
    }
}

fn is_keyword(token: Token<'_>) -> bool {
    KEYWORDS.iter().any(|keyword| token.is_keyword(keyword))
}
