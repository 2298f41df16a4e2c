//! Parses the operands and functions of conditions.

use homeport_item::expression::{Condition, Operand};
use homeport_item::{Value, ValueKind};

use crate::error::ParseError;
use crate::parser::Parser;
use crate::token::{Position, Token};

/// A parsed term of a condition.
pub(crate) enum Term {
    Operand(Operand),
    Condition(Condition),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Function {
    Exists,
    NotExists,
    Type,
    BeginsWith,
    Contains,
    Size,
}

const FUNCTIONS: [(&str, Function); 6] = [
    ("attribute_exists", Function::Exists),
    ("attribute_not_exists", Function::NotExists),
    ("attribute_type", Function::Type),
    ("begins_with", Function::BeginsWith),
    ("contains", Function::Contains),
    ("size", Function::Size),
];

impl Parser<'_> {
    /// Parses an operand or a function call.
    pub(crate) fn term(&mut self) -> Result<Term, ParseError> {
        if self.at_word("EXISTS") && self.sign_at(1, "(") {
            if self.word_at(2, "SELECT") {
                return Err(self
                    .unsupported("EXISTS can only be used in ExecuteTransaction write requests."));
            }
            let at = self.here();
            return Err(self.unsupported(format!("Unrecognized function: exists at {at}")));
        }
        if self.name_at(0) && self.sign_at(1, "(") && matches!(self.peek(), Token::Word(_)) {
            return self.call();
        }
        self.plain_operand().map(Term::Operand)
    }

    /// Parses an operand. A call is valid only if its function returns a value.
    pub(crate) fn operand(&mut self) -> Result<Operand, ParseError> {
        let at = self.here();
        match self.term()? {
            Term::Operand(operand) => Ok(operand),
            Term::Condition(_) => Err(ParseError::unsupported(
                "Conditions cannot be compared with each other",
                at,
            )),
        }
    }

    fn plain_operand(&mut self) -> Result<Operand, ParseError> {
        if self.at_value() {
            return self.value().map(Operand::Value);
        }
        self.path().map(Operand::Path)
    }

    fn call(&mut self) -> Result<Term, ParseError> {
        let at = self.here();
        let Token::Word(name) = self.advance() else {
            return Err(self.no_term());
        };
        let known = FUNCTIONS
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(&name));
        let Some((name, function)) = known else {
            return Err(ParseError::unsupported(
                format!("Unrecognized function: {name} at {at}"),
                at,
            ));
        };
        self.count_operator()?;
        self.expect_sign("(", "LEFT_PAREN")?;
        let arguments = self.nested(Self::arguments)?;
        apply(name, *function, arguments, at)
    }

    /// Parses operands up to the closing parenthesis.
    pub(crate) fn arguments(&mut self) -> Result<Vec<Operand>, ParseError> {
        let mut arguments = Vec::new();
        if self.take_sign(")") {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.plain_operand()?);
            if self.take_sign(")") {
                return Ok(arguments);
            }
            self.expect_sign(",", "RIGHT_PAREN")?;
        }
    }
}

fn apply(
    name: &str,
    function: Function,
    arguments: Vec<Operand>,
    at: Position,
) -> Result<Term, ParseError> {
    let unsupported = |text: String| Err(ParseError::unsupported(text, at));
    let wrong_type = |found: ValueKind| {
        unsupported(format!(
            "Incorrect operand type for operator or function; operator or function: {name}, operand type: {}",
            found.name()
        ))
    };
    let count = arguments.len();
    let mut arguments = arguments.into_iter();
    let (first, second) = match (function, arguments.next(), arguments.next(), count) {
        (Function::Exists | Function::NotExists | Function::Size, Some(first), None, 1) => {
            (first, None)
        }
        (
            Function::Type | Function::BeginsWith | Function::Contains,
            Some(first),
            Some(second),
            2,
        ) => (first, Some(second)),
        _ => {
            return unsupported(format!(
                "Incorrect number of operands for operator or function; operator or function: {name}, number of operands: {count}"
            ));
        }
    };
    let condition = match (function, first, second) {
        (Function::Exists, Operand::Path(path), _) => Condition::Exists(path),
        (Function::NotExists, Operand::Path(path), _) => Condition::NotExists(path),
        (Function::Size, Operand::Path(path), _) => {
            return Ok(Term::Operand(Operand::Size(path)));
        }
        (Function::Type, Operand::Path(path), Some(Operand::Value(Value::S(kind)))) => {
            match ValueKind::from_name(&kind) {
                Some(kind) => Condition::IsType(path, kind),
                None => {
                    return unsupported(format!(
                        "Invalid attribute type name found; type: {kind}, valid types: {{N,BS,L,B,NULL,M,S,SS,NS,BOOL}}"
                    ));
                }
            }
        }
        (Function::Type, Operand::Path(_), Some(Operand::Value(other))) => {
            return wrong_type(other.kind());
        }
        (Function::BeginsWith, first, Some(second)) => {
            for operand in [&first, &second] {
                if let Operand::Value(value) = operand
                    && !matches!(value.kind(), ValueKind::S | ValueKind::B)
                {
                    return wrong_type(value.kind());
                }
            }
            Condition::BeginsWith(first, second)
        }
        (Function::Contains, first, Some(second)) => Condition::Contains(first, second),
        _ => {
            return unsupported(format!(
                "Operator or function requires a document path; operator or function: {name}"
            ));
        }
    };
    Ok(Term::Condition(condition))
}
