//! Parses SET and REMOVE clauses.

use homeport_item::Value;
use homeport_item::expression::{
    ExpressionError, ExpressionProblem, Operand, Path, Update, UpdateOperand,
};

use crate::error::ParseError;
use crate::parser::Parser;
use crate::token::{Position, Token};

/// Maximum number of assignments and removals in one statement; its length allows no more.
const CLAUSES_MAX: usize = crate::token::STATEMENT_MAX_CHARS;

impl Parser<'_> {
    pub(crate) fn at_change(&self) -> bool {
        self.at_word("SET") || self.at_word("REMOVE")
    }

    /// Parses any number of SET and REMOVE clauses.
    pub(crate) fn changes(&mut self) -> Result<Update, ParseError> {
        let at = self.here();
        let mut update = Update::new();
        let mut clauses = 0;
        while self.at_change() {
            let removes = self.at_word("REMOVE");
            self.advance();
            loop {
                clauses += 1;
                if clauses > CLAUSES_MAX {
                    return Err(self.syntax("Statement is too long"));
                }
                update = if removes {
                    update.remove(self.path()?)
                } else {
                    self.assignment(update)?
                };
                if !self.take_sign(",") {
                    break;
                }
            }
        }
        // Messages about a PartiQL update do not name an expression, because they have none.
        update.check().map_err(|error| {
            let text = match error {
                // PartiQL's message names the later path first.
                ExpressionError::Invalid {
                    problem: ExpressionProblem::Overlap { one, two },
                    ..
                } => ExpressionProblem::Overlap { one: two, two: one }.to_string(),
                ExpressionError::Invalid { problem, .. } => problem.to_string(),
                ExpressionError::KeyCondition(_) => error.to_string(),
            };
            ParseError::unsupported(text, at)
        })?;
        Ok(update)
    }

    fn assignment(&mut self, update: Update) -> Result<Update, ParseError> {
        let path = self.path()?;
        self.expect_sign("=", "'='")?;
        let at = self.here();
        for (name, deletes) in [("SET_ADD", false), ("SET_DELETE", true)] {
            if self.at_word(name) && self.sign_at(1, "(") {
                let members = self.set_call(name, &path, at)?;
                return Ok(if deletes {
                    update.delete(path, members)
                } else {
                    update.add(path, members)
                });
            }
        }
        let left = self.assigned()?;
        let operand = if self.take_sign("+") {
            left.plus(self.assigned()?)
        } else if self.take_sign("-") {
            left.minus(self.assigned()?)
        } else {
            left
        };
        Ok(update.set(path, operand))
    }

    /// Parses one operand of an assigned value.
    fn assigned(&mut self) -> Result<UpdateOperand, ParseError> {
        if self.at_value() {
            return self.value().map(UpdateOperand::Value);
        }
        if !(self.name_at(0) && self.sign_at(1, "(") && matches!(self.peek(), Token::Word(_))) {
            return self.path().map(UpdateOperand::Path);
        }
        let at = self.here();
        if !self.at_word("LIST_APPEND") {
            let Token::Word(name) = self.advance() else {
                return Err(self.no_term());
            };
            return Err(ParseError::unsupported(
                format!("Unrecognized function: {name} at {at}"),
                at,
            ));
        }
        self.advance();
        self.advance();
        self.nested(|parser| {
            let left = parser.assigned()?;
            parser.expect_sign(",", "COMMA")?;
            let right = parser.assigned()?;
            parser.expect_sign(")", "RIGHT_PAREN")?;
            Ok(UpdateOperand::list_append(left, right))
        })
    }

    /// Parses `set_add(path, set)` or `set_delete(path, set)`. The path must be the assigned one.
    fn set_call(&mut self, name: &str, target: &Path, at: Position) -> Result<Value, ParseError> {
        self.advance();
        self.advance();
        let first_at = self.here();
        let arguments = self.nested(Self::arguments)?;
        let Ok([first, members]) = <[Operand; 2]>::try_from(arguments) else {
            return Err(ParseError::unsupported(
                format!("{name} must have exactly two arguments at {at}"),
                at,
            ));
        };
        if !matches!(&first, Operand::Path(path) if path == target) {
            return Err(ParseError::unsupported(
                format!("The first argument to {name} must equal the assignment value at {at}"),
                at,
            ));
        }
        match members {
            Operand::Value(members @ (Value::Ss(_) | Value::Ns(_) | Value::Bs(_))) => Ok(members),
            _ => Err(ParseError::unsupported(
                format!(
                    "The second argument to {name} must be a value with type SET at {first_at}"
                ),
                first_at,
            )),
        }
    }
}
