//! Parses conditions, which follow WHERE.

use homeport_item::expression::{
    Comparator, Condition, IN_OPERANDS_MAX, ListedPath, Operand, QuotedValue, SortCondition,
};
use homeport_item::{Value, ValueKind};

use crate::error::ParseError;
use crate::parse_operand::Term;
use crate::parser::Parser;
use crate::token::{Position, Token};

const NOT_BOOLEAN: &str = "WHERE clause must contain an expression that resolves to a boolean";

/// The types that `IS` tests for.
enum Test {
    Missing,
    Type(ValueKind),
}

const TESTS: [(&str, Test); 10] = [
    ("MISSING", Test::Missing),
    ("NULL", Test::Type(ValueKind::Null)),
    ("BOOL", Test::Type(ValueKind::Bool)),
    ("BOOLEAN", Test::Type(ValueKind::Bool)),
    ("BLOB", Test::Type(ValueKind::B)),
    ("STRING", Test::Type(ValueKind::S)),
    ("NUMERIC", Test::Type(ValueKind::N)),
    ("STRUCT", Test::Type(ValueKind::M)),
    ("TUPLE", Test::Type(ValueKind::M)),
    ("LIST", Test::Type(ValueKind::L)),
];

impl Parser<'_> {
    /// Parses a whole condition.
    pub(crate) fn condition(&mut self) -> Result<Condition, ParseError> {
        let at = self.here();
        let term = self.alternatives()?;
        boolean(term, at)
    }

    fn alternatives(&mut self) -> Result<Term, ParseError> {
        self.chain("OR", Self::conjunction, Condition::any)
    }

    fn conjunction(&mut self) -> Result<Term, ParseError> {
        self.chain("AND", Self::negation, Condition::all)
    }

    /// Parses a chain of conditions joined by `word`.
    fn chain(
        &mut self,
        word: &str,
        read: fn(&mut Self) -> Result<Term, ParseError>,
        join: fn(Vec<Condition>) -> Option<Condition>,
    ) -> Result<Term, ParseError> {
        let at = self.here();
        let first = read(self)?;
        if !self.at_word(word) {
            return Ok(first);
        }
        let mut conditions = vec![boolean(first, at)?];
        while self.take_word(word) {
            self.count_operator()?;
            if matches!(self.peek(), Token::End | Token::Sign(";")) {
                return Err(self.syntax("Missing right-hand side expression of infix operator"));
            }
            let at = self.here();
            conditions.push(boolean(read(self)?, at)?);
        }
        match join(conditions) {
            Some(condition) => Ok(Term::Condition(condition)),
            None => Err(self.no_term()),
        }
    }

    fn negation(&mut self) -> Result<Term, ParseError> {
        let mut negated = false;
        let mut any = false;
        while self.take_word("NOT") {
            self.count_operator()?;
            negated = !negated;
            any = true;
        }
        let at = self.here();
        let term = self.primary()?;
        if !any {
            return Ok(term);
        }
        let condition = boolean(term, at)?;
        Ok(Term::Condition(if negated {
            !condition
        } else {
            condition
        }))
    }

    fn primary(&mut self) -> Result<Term, ParseError> {
        let term = if self.take_sign("(") {
            let term = self.nested(Self::alternatives)?;
            self.expect_sign(")", "RIGHT_PAREN")?;
            term
        } else {
            self.term()?
        };
        match term {
            Term::Operand(operand) => self.comparison(operand),
            Term::Condition(condition) => self.truth(condition).map(Term::Condition),
        }
    }

    /// Parses an optional comparison of a condition with a Boolean, such as `= true`.
    fn truth(&mut self, condition: Condition) -> Result<Condition, ParseError> {
        let is_equal = match self.comparator() {
            Some(Comparator::Equal) => true,
            Some(Comparator::NotEqual) => false,
            _ => return Ok(condition),
        };
        self.advance();
        self.count_operator()?;
        let at = self.here();
        match self.operand()? {
            Operand::Value(Value::Bool(wanted)) if wanted == is_equal => Ok(condition),
            Operand::Value(Value::Bool(_)) => Ok(!condition),
            _ => Err(ParseError::unsupported(
                "Conditions cannot be compared with each other",
                at,
            )),
        }
    }

    /// Parses the rest of a comparison that starts with `first`, if an operator follows.
    fn comparison(&mut self, first: Operand) -> Result<Term, ParseError> {
        let at = self.here();
        if let Some(comparator) = self.comparator() {
            self.advance();
            self.count_operator()?;
            if matches!(self.peek(), Token::End | Token::Sign(";")) {
                return Err(self.syntax("Missing right-hand side expression of infix operator"));
            }
            let second = self.operand()?;
            check_distinct(comparator.sign(), &first, [&second], at)?;
            if !matches!(comparator, Comparator::Equal | Comparator::NotEqual) {
                check_ordered(comparator.sign(), [&first, &second], at)?;
            }
            return Ok(Term::Condition(Condition::Compare(
                first, comparator, second,
            )));
        }
        if self.at_word("IS") {
            return self.test(first).map(Term::Condition);
        }
        let negated = self.at_word("NOT") && (self.word_at(1, "BETWEEN") || self.word_at(1, "IN"));
        if negated {
            self.advance();
            self.count_operator()?;
        }
        let condition = if self.take_word("BETWEEN") {
            self.between(first, at)?
        } else if self.take_word("IN") {
            self.choice(first, at)?
        } else {
            return Ok(Term::Operand(first));
        };
        Ok(Term::Condition(if negated {
            !condition
        } else {
            condition
        }))
    }

    fn comparator(&self) -> Option<Comparator> {
        let Token::Sign(sign) = self.peek() else {
            return None;
        };
        Some(match *sign {
            "=" => Comparator::Equal,
            "<>" | "!=" => Comparator::NotEqual,
            "<" => Comparator::Less,
            "<=" => Comparator::LessOrEqual,
            ">" => Comparator::Greater,
            ">=" => Comparator::GreaterOrEqual,
            _ => return None,
        })
    }

    fn between(&mut self, first: Operand, at: Position) -> Result<Condition, ParseError> {
        self.count_operator()?;
        let lower = self.operand()?;
        self.expect_word("AND")?;
        if matches!(self.peek(), Token::End | Token::Sign(";")) {
            return Err(self.syntax("Expected expression after AND"));
        }
        let upper = self.operand()?;
        check_distinct("BETWEEN", &first, [&lower, &upper], at)?;
        check_ordered("BETWEEN", [&first, &lower, &upper], at)?;
        if let (Operand::Value(low), Operand::Value(high)) = (&lower, &upper) {
            let rule = if low.kind() != high.kind() {
                Some("same data type for lower and upper bounds")
            } else if SortCondition::Greater(high.clone()).matches(low) {
                Some("upper bound to be greater than or equal to lower bound")
            } else {
                None
            };
            if let Some(rule) = rule {
                let (low, high) = (QuotedValue(low.clone()), QuotedValue(high.clone()));
                return Err(ParseError::unsupported(
                    format!(
                        "The BETWEEN operator requires {rule}; lower bound operand: {low}, upper bound operand: {high}"
                    ),
                    at,
                ));
            }
        }
        Ok(Condition::Between(first, lower, upper))
    }

    fn choice(&mut self, first: Operand, at: Position) -> Result<Condition, ParseError> {
        self.count_operator()?;
        let (close, name) = if self.take_sign("[") {
            ("]", "RIGHT_BRACKET")
        } else if self.take_sign("(") {
            (")", "RIGHT_PAREN")
        } else {
            return Err(self.no_term());
        };
        let mut choices = Vec::new();
        while !self.take_sign(close) {
            if !choices.is_empty() {
                self.expect_sign(",", name)?;
            }
            choices.push(self.nested(Self::operand)?);
        }
        check_distinct("IN", &first, &choices, at)?;
        if choices.len() > IN_OPERANDS_MAX {
            return Err(ParseError::unsupported(
                format!(
                    "The IN operator is provided with too many operands; number of operands: {}",
                    choices.len()
                ),
                at,
            ));
        }
        Ok(Condition::In(first, choices))
    }

    /// Parses `IS [NOT] type`.
    fn test(&mut self, first: Operand) -> Result<Condition, ParseError> {
        let at = self.here();
        self.advance();
        self.count_operator()?;
        let negated = self.take_word("NOT");
        if negated {
            self.count_operator()?;
        }
        let found = TESTS.iter().find(|(word, _)| self.at_word(word));
        let Some((_, test)) = found else {
            return Err(self.syntax("Expected type name"));
        };
        self.advance();
        let Operand::Path(path) = first else {
            return Err(ParseError::unsupported(
                "Operator or function requires a document path; operator or function: IS",
                at,
            ));
        };
        Ok(match (test, negated) {
            (Test::Missing, false) => Condition::NotExists(path),
            (Test::Missing, true) => Condition::Exists(path),
            (Test::Type(kind), false) => Condition::IsType(path, *kind),
            (Test::Type(kind), true) => !Condition::IsType(path, *kind),
        })
    }
}

fn boolean(term: Term, at: Position) -> Result<Condition, ParseError> {
    match term {
        Term::Condition(condition) => Ok(condition),
        Term::Operand(_) => Err(ParseError::unsupported(NOT_BOOLEAN, at)),
    }
}

fn check_distinct<'o>(
    operator: &str,
    first: &Operand,
    rest: impl IntoIterator<Item = &'o Operand>,
    at: Position,
) -> Result<(), ParseError> {
    let Operand::Path(path) = first else {
        return Ok(());
    };
    if !rest.into_iter().any(|operand| operand == first) {
        return Ok(());
    }
    let path = ListedPath(path.clone());
    Err(ParseError::unsupported(
        format!(
            "The first operand must be distinct from the remaining operands for this operator or function; operator: {operator}, first operand: {path}"
        ),
        at,
    ))
}

/// Checks that the operands are strings, numbers or binaries, the types with an order.
fn check_ordered<'o>(
    operator: &str,
    operands: impl IntoIterator<Item = &'o Operand>,
    at: Position,
) -> Result<(), ParseError> {
    for operand in operands {
        if let Operand::Value(value) = operand
            && !matches!(value.kind(), ValueKind::S | ValueKind::N | ValueKind::B)
        {
            return Err(ParseError::unsupported(
                format!(
                    "Incorrect operand type for operator or function; operator or function: {operator}, operand type: {}",
                    value.kind().name()
                ),
                at,
            ));
        }
    }
    Ok(())
}
