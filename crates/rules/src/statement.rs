//! A statement: parsed and checked once, evaluated on many messages.

use std::fmt;

use crate::convert::to_boolean;
use crate::evaluate::{Context, EvaluationError, Scope};
use crate::explain::{self, Explanation};
use crate::message::{Message, Randomness};
use crate::parser::{Parser, Parts, TEXT_LEN_MAX_BYTES};
use crate::select;
use crate::syntax_error::SyntaxError;
use crate::topic::TopicFilter;
use crate::value::Value;

/// The version of the language, which `sql_version()` answers.
pub const SQL_VERSION: &str = "2016-03-23";

/// A statement in AWS IoT SQL.
#[derive(Clone)]
pub struct Statement {
    text: String,
    pub(crate) parts: Parts,
}

/// What a statement makes of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The rule fires, with this value.
    Matched(Value),
    /// The topic is another, or WHERE does not hold.
    NotMatched,
}

/// What SET made of a message, for templates of the same rule.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Variables(pub(crate) Vec<Value>);

impl Statement {
    /// # Errors
    /// When the text is not a statement, is too long or too deep, or calls a function that needs AWS.
    pub fn parse(sql: &str) -> Result<Self, SyntaxError> {
        if sql.len() > TEXT_LEN_MAX_BYTES {
            let expected = format!("a statement of at most {TEXT_LEN_MAX_BYTES} bytes");
            let found = format!("{} bytes", sql.len());
            return Err(SyntaxError::new(sql, 0, expected, found));
        }
        Ok(Self {
            text: sql.to_owned(),
            parts: Parser::new(sql, 0, Vec::new()).statement()?,
        })
    }

    /// Which topics FROM names.
    #[must_use]
    pub fn filter(&self) -> &TopicFilter {
        &self.parts.filter
    }

    /// The text, as it was parsed.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What the statement makes of a message.
    ///
    /// # Errors
    /// When the payload is not what the statement needs, or the work is more than is allowed.
    pub fn evaluate(
        &self,
        message: &Message<'_>,
        randomness: &mut dyn Randomness,
    ) -> Result<Outcome, EvaluationError> {
        self.run(message, randomness).map(|(outcome, _)| outcome)
    }

    /// As [`Statement::evaluate`], with the variables, so that templates of the same rule see the
    /// same values. There are none where the topic is another.
    ///
    /// # Errors
    /// As [`Statement::evaluate`].
    pub fn run(
        &self,
        message: &Message<'_>,
        randomness: &mut dyn Randomness,
    ) -> Result<(Outcome, Variables), EvaluationError> {
        if !self.parts.filter.matches(message.topic) {
            return Ok((Outcome::NotMatched, Variables::default()));
        }
        let mut context = Context::new(randomness, false);
        let variables = self.variables(message, &mut context)?;
        let scope = Scope {
            message,
            current: None,
            variables: &variables.0,
        };
        if let Some(condition) = &self.parts.condition {
            let truth = context.evaluate(condition, scope)?;
            if to_boolean(&truth) != Some(true) {
                return Ok((Outcome::NotMatched, variables));
            }
        }
        let value = select::select(&self.parts.selection, scope, &mut context)?;
        Ok((Outcome::Matched(value), variables))
    }

    /// As [`Statement::evaluate`], and says why: each thing that is Undefined, and what of WHERE does
    /// not hold.
    pub fn explain(&self, message: &Message<'_>, randomness: &mut dyn Randomness) -> Explanation {
        explain::explain(self, message, randomness)
    }

    pub(crate) fn variables(
        &self,
        message: &Message<'_>,
        context: &mut Context<'_>,
    ) -> Result<Variables, EvaluationError> {
        let mut values = Vec::with_capacity(self.parts.variables.len());
        for variable in &self.parts.variables {
            let scope = Scope {
                message,
                current: None,
                variables: &values,
            };
            let value = context.evaluate(&variable.expression, scope)?;
            let value = context.own(value)?;
            values.push(value);
        }
        Ok(Variables(values))
    }

    pub(crate) fn variable_names(&self) -> Vec<String> {
        let names = self.parts.variables.iter();
        names.map(|variable| variable.name.clone()).collect()
    }
}

impl fmt::Debug for Statement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Statement")
            .field(&self.text)
            .finish()
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// Two statements are equal where their texts are.
impl PartialEq for Statement {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Statement {}
