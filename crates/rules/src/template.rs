//! Substitution templates: the texts of actions, which contain `${expression}`.

use std::fmt;

use crate::evaluate::convert::to_text;
use crate::evaluate::{Context, EvaluationError, Scope};
use crate::message::{Message, Randomness};
use crate::parse::statement::{Parser, TEXT_LEN_MAX_BYTES};
use crate::parse::syntax_error::SyntaxError;
use crate::parse::tree::Expression;
use crate::statement::{Statement, Variables};

/// Maximum length of a rendered text.
pub const RENDERED_LEN_MAX_BYTES: usize = 256 * 1024;

/// A text with embedded expressions.
#[derive(Clone)]
pub struct Template {
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
enum Part {
    Text(String),
    Expression(Expression),
}

/// Why rendering a template failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    #[error("`{expression}` has no value in this message")]
    Undefined { expression: String },
    #[error("the rendered text exceeds {RENDERED_LEN_MAX_BYTES} bytes")]
    TooLong,
    #[error(transparent)]
    Evaluation(#[from] EvaluationError),
}

impl Template {
    /// # Errors
    /// When an expression is invalid or not closed, or the text is too long.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        Self::parse_with_variables(text, &[])
    }

    /// Parses a template of the same rule, which may use the statement's variables.
    ///
    /// # Errors
    /// As [`Template::parse`].
    pub fn parse_for(text: &str, statement: &Statement) -> Result<Self, SyntaxError> {
        Self::parse_with_variables(text, &statement.variable_names())
    }

    fn parse_with_variables(text: &str, variables: &[String]) -> Result<Self, SyntaxError> {
        if text.len() > TEXT_LEN_MAX_BYTES {
            let expected = format!("a template of at most {TEXT_LEN_MAX_BYTES} bytes");
            let found = format!("{} bytes", text.len());
            return Err(SyntaxError::new(text, 0, expected, found));
        }
        let mut parts = Vec::new();
        let mut at = 0;
        while let Some(found) = text[at..].find("${") {
            if found > 0 {
                parts.push(Part::Text(text[at..at + found].to_owned()));
            }
            let mut parser = Parser::new(text, at + found + 2, variables.to_vec());
            parts.push(Part::Expression(parser.expression()?));
            if !parser.token.is_sign("}") {
                return Err(parser.unexpected("an operator or `}`"));
            }
            at = parser.token.end();
        }
        if at < text.len() {
            parts.push(Part::Text(text[at..].to_owned()));
        }
        Ok(Self {
            text: text.to_owned(),
            parts,
        })
    }

    /// The original text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the template contains no expressions.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Text(_)))
    }

    /// Renders the text for a message.
    ///
    /// # Errors
    /// When the value of an expression cannot be converted to text.
    pub fn render(
        &self,
        message: &Message<'_>,
        randomness: &mut dyn Randomness,
    ) -> Result<String, RenderError> {
        self.render_with(message, &Variables::default(), randomness)
    }

    /// Renders the text for a message, with the variables of the rule's statement.
    ///
    /// # Errors
    /// As [`Template::render`].
    pub fn render_with(
        &self,
        message: &Message<'_>,
        variables: &Variables,
        randomness: &mut dyn Randomness,
    ) -> Result<String, RenderError> {
        let mut context = Context::new(randomness, false);
        let scope = Scope {
            message,
            current: None,
            variables: &variables.0,
        };
        let mut rendered = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => rendered.push_str(text),
                Part::Expression(expression) => {
                    let value = context.evaluate(expression, scope)?;
                    let text = to_text(&value).ok_or_else(|| RenderError::Undefined {
                        expression: self.text[expression.span.start..expression.span.end]
                            .to_owned(),
                    })?;
                    rendered.push_str(&text);
                }
            }
            if rendered.len() > RENDERED_LEN_MAX_BYTES {
                return Err(RenderError::TooLong);
            }
        }
        Ok(rendered)
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Template").field(&self.text).finish()
    }
}

/// Templates are equal if their texts are equal.
impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Template {}
