//! Statements, which are parsed and checked once and evaluated on many messages.

use std::fmt;

use crate::evaluate::convert::to_boolean;
use crate::evaluate::explain::{self, Explanation};
use crate::evaluate::select;
use crate::evaluate::{Context, EvaluationError, Scope};
use crate::message::{Message, Randomness};
use crate::parse::statement::{Parser, StatementParts, TEXT_LEN_MAX_BYTES};
use crate::parse::syntax_error::SyntaxError;
use crate::parse::tree::{Expression, Logic, Node, Selected, Selection};
use crate::topic::TopicFilter;
use crate::value::Value;

/// The version of the language, the result of `sql_version()`.
pub const SQL_VERSION: &str = "2016-03-23";

/// A statement in AWS IoT SQL.
#[derive(Clone)]
pub struct Statement {
    text: String,
    pub(crate) parts: StatementParts,
}

/// The outcome of a statement for a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The rule fires, with this value.
    Matched(Value),
    /// The topic does not match, or WHERE is not true.
    NotMatched,
}

/// The values of SET's variables for a message, for templates of the same rule.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Variables(pub(crate) Vec<Value>);

impl Statement {
    /// # Errors
    /// When the text is invalid, too long, nested too deeply, or calls a function that needs AWS.
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

    /// The topic filter in FROM.
    #[must_use]
    pub fn filter(&self) -> &TopicFilter {
        &self.parts.filter
    }

    /// Whether the statement names this member of the result. A result whose members are unknown, as that of
    /// `SELECT VALUE path`, counts as naming every member.
    #[must_use]
    pub fn names_member(&self, name: &str) -> bool {
        match &self.parts.selection {
            Selection::Value(selected) => !matches!(selected, Selected::Everything),
            Selection::Items(items) => items
                .iter()
                .any(|item| item.path.first().is_some_and(|first| first == name)),
        }
    }

    /// Whether WHERE is constant and not true, so that no message matches.
    #[must_use]
    pub fn matches_nothing(&self) -> bool {
        self.parts.condition.as_ref().is_some_and(is_never_true)
    }

    /// The original text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Evaluates the statement on a message.
    ///
    /// # Errors
    /// When the payload does not fit the statement, or the evaluation exceeds its work limit.
    pub fn evaluate(
        &self,
        message: &Message<'_>,
        randomness: &mut dyn Randomness,
    ) -> Result<Outcome, EvaluationError> {
        self.run(message, randomness).map(|(outcome, _)| outcome)
    }

    /// Like [`Statement::evaluate`], and returns the variables, so that templates of the same rule
    /// see the same values. There are no variables if the topic does not match.
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

    /// Like [`Statement::evaluate`], and explains every Undefined value and the part of WHERE that
    /// is not true.
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

fn is_never_true(condition: &Expression) -> bool {
    match &condition.node {
        Node::Literal(value) => to_boolean(value) != Some(true),
        Node::Logic(Logic::And, left, right) => is_never_true(left) || is_never_true(right),
        Node::Logic(Logic::Or, left, right) => is_never_true(left) && is_never_true(right),
        _ => false,
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

/// Statements are equal if their texts are equal.
impl PartialEq for Statement {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Statement {}
