//! Parses literals of every type, and parameters.

use homeport_item::value::DEPTH_MAX;
use homeport_item::{Map, Number, Set, Value};

use crate::error::ParseError;
use crate::parser::Parser;
use crate::token::Token;

const MISSING_COMPARED: &str = "MISSING must be compared using IS operator";
const BAG_MEMBERS: &str =
    "Unsupported data type in Bag. DynamoDB only supports either numbers or strings in bags";

impl Parser<'_> {
    /// Whether the next token starts a value.
    pub(crate) fn at_value(&self) -> bool {
        match self.peek() {
            Token::Text(_) | Token::Number(_) => true,
            Token::Sign(sign) => matches!(*sign, "?" | "[" | "{" | "<<" | "-" | "+"),
            Token::Word(_) => ["TRUE", "FALSE", "NULL", "MISSING"]
                .iter()
                .any(|word| self.at_word(word)),
            Token::Name(_) | Token::End => false,
        }
    }

    /// Parses a literal or a parameter.
    pub(crate) fn value(&mut self) -> Result<Value, ParseError> {
        let at = self.here();
        let value = self.any_value()?;
        if value.depth() > DEPTH_MAX {
            return Err(ParseError::unsupported(
                "Nesting Levels have exceeded supported limits",
                at,
            ));
        }
        Ok(value)
    }

    fn any_value(&mut self) -> Result<Value, ParseError> {
        for (word, value) in [
            ("TRUE", Value::Bool(true)),
            ("FALSE", Value::Bool(false)),
            ("NULL", Value::Null),
        ] {
            if self.take_word(word) {
                return Ok(value);
            }
        }
        if self.at_word("MISSING") {
            return Err(self.unsupported(MISSING_COMPARED));
        }
        if matches!(self.peek(), Token::Word(_)) && self.sign_at(1, "(") {
            return Err(self.no_literal());
        }
        match self.peek() {
            Token::Text(_) => match self.advance() {
                Token::Text(text) => Ok(Value::S(text)),
                _ => Err(self.no_term()),
            },
            Token::Number(_) | Token::Sign("-" | "+") => self.number().map(Value::N),
            Token::Sign("?") => {
                self.advance();
                Ok(self.parameter())
            }
            Token::Sign("[") => {
                self.advance();
                self.nested(|parser| parser.elements("]", "RIGHT_BRACKET"))
                    .map(Value::L)
            }
            Token::Sign("<<") => {
                let at = self.here();
                self.advance();
                let members =
                    self.nested(|parser| parser.elements(">>", "RIGHT_DOUBLE_ANGLE_BRACKET"))?;
                set(members).map_err(|text| ParseError::unsupported(text, at))
            }
            Token::Sign("{") => self.map().map(Value::M),
            _ => Err(self.no_term()),
        }
    }

    fn number(&mut self) -> Result<Number, ParseError> {
        let at = self.here();
        let mut negative = false;
        while let Token::Sign(sign @ ("-" | "+")) = *self.peek() {
            negative ^= sign == "-";
            self.advance();
        }
        let Token::Number(text) = self.peek() else {
            return Err(self.no_term());
        };
        let number: Number = text.parse().map_err(|error: homeport_item::NumberError| {
            ParseError::unsupported(format!("{error} under {}", self.root()), at)
        })?;
        self.advance();
        Ok(if negative { number.negated() } else { number })
    }

    /// The path of the current value, as messages show it.
    fn root(&self) -> String {
        format!("root{}", self.value_path.concat())
    }

    /// The error for a call in place of a literal.
    fn no_literal(&self) -> ParseError {
        let at = self.here();
        let Token::Word(name) = self.peek() else {
            return self.no_term();
        };
        self.unsupported(format!(
            "Unsupported data type: {name} under key {} at {at}",
            self.root()
        ))
    }

    /// Parses a part of a value at the path step `step`.
    fn part(&mut self, step: String) -> Result<Value, ParseError> {
        self.value_path.push(step);
        let value = self.any_value()?;
        self.value_path.pop();
        Ok(value)
    }

    /// Parses values up to a closing sign.
    pub(crate) fn elements(&mut self, close: &str, name: &str) -> Result<Vec<Value>, ParseError> {
        let mut elements = Vec::new();
        if self.take_sign(close) {
            return Ok(elements);
        }
        loop {
            elements.push(self.part(format!("[{}]", elements.len()))?);
            if self.take_sign(close) {
                return Ok(elements);
            }
            self.expect_sign(",", name)?;
        }
    }

    fn map(&mut self) -> Result<Map, ParseError> {
        self.entries(|parser, name| parser.part(format!(".{name}")))
    }

    /// Parses a whole item. Each attribute is a value with its own path.
    pub(crate) fn item(&mut self) -> Result<Map, ParseError> {
        self.entries(|parser, _| parser.any_value())
    }

    /// Parses names, which are strings, with values.
    fn entries(
        &mut self,
        read: fn(&mut Self, &str) -> Result<Value, ParseError>,
    ) -> Result<Map, ParseError> {
        self.expect_sign("{", "LEFT_CURLY")?;
        self.nested(|parser| {
            let mut entries = Vec::new();
            if parser.take_sign("}") {
                return Ok(Map::new());
            }
            loop {
                let at = parser.here();
                let Token::Text(name) = parser.advance() else {
                    return Err(ParseError::syntax("Expected a string as a key", at));
                };
                parser.expect_sign(":", "COLON")?;
                let value = read(parser, &name)?;
                entries.push((homeport_item::Name::from(name), value));
                if parser.take_sign("}") {
                    return Ok(entries.into_iter().collect());
                }
                parser.expect_sign(",", "RIGHT_CURLY")?;
            }
        })
    }
}

/// Builds a set of strings or numbers.
fn set(members: Vec<Value>) -> Result<Value, String> {
    if members.is_empty() {
        return Err("Empty bags are not supported".to_owned());
    }
    let mut texts = Vec::new();
    let mut numbers = Vec::new();
    for member in members {
        match member {
            Value::S(text) if numbers.is_empty() => texts.push(text),
            Value::N(number) if texts.is_empty() => numbers.push(number),
            _ => return Err(BAG_MEMBERS.to_owned()),
        }
    }
    let invalid = |error: homeport_item::SetError| {
        format!("One or more parameter values were invalid: {error}")
    };
    if numbers.is_empty() {
        let listed = texts.join(", ");
        Set::new(texts).map(Value::Ss).map_err(|error| match error {
            homeport_item::SetError::Duplicate => format!(
                "One or more parameter values were invalid: Input collection [{listed}] contains duplicates."
            ),
            other => invalid(other),
        })
    } else {
        Set::new(numbers).map(Value::Ns).map_err(invalid)
    }
}
