//! Explains the outcome of a statement, with positions in its text.

use std::borrow::Cow;

use crate::evaluate::convert::to_boolean;
use crate::evaluate::operators;
use crate::evaluate::select;
use crate::evaluate::{Context, EvaluationError, Reason, Scope, logic, shown};
use crate::message::{Message, Randomness};
use crate::parse::syntax_error::TextPosition;
use crate::parse::tree::{Comparison, Expression, Logic, Node};
use crate::statement::{Outcome, Statement};
use crate::value::Value;

/// An outcome with its reasons.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    pub outcome: Result<Outcome, EvaluationError>,
    /// Why the rule does not fire: the part of WHERE that is not true, or FROM.
    pub unmet: Option<Note>,
    /// Why parts of the statement are Undefined, in the order of evaluation; at most
    /// [`crate::NOTES_MAX`] notes.
    pub undefined: Vec<Note>,
}

/// A reason, and the part of the statement that it refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The byte offset in the text.
    pub start: usize,
    pub end: usize,
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    /// The part of the text.
    pub text: String,
    pub reason: String,
}

pub(crate) fn explain(
    statement: &Statement,
    message: &Message<'_>,
    randomness: &mut dyn Randomness,
) -> Explanation {
    let mut context = Context::new(randomness, true);
    let mut unmet = None;
    let outcome = run(statement, message, &mut context, &mut unmet);
    let note = |reason: Reason| note(statement.text(), reason);
    Explanation {
        outcome,
        unmet,
        undefined: context
            .reasons
            .unwrap_or_default()
            .into_iter()
            .map(note)
            .collect(),
    }
}

fn run(
    statement: &Statement,
    message: &Message<'_>,
    context: &mut Context<'_>,
    unmet: &mut Option<Note>,
) -> Result<Outcome, EvaluationError> {
    if !statement.filter().matches(message.topic) {
        let reason = Reason {
            span: statement.parts.filter_span,
            text: format!("the topic is {}", message.topic).into(),
        };
        *unmet = Some(note(statement.text(), reason));
        return Ok(Outcome::NotMatched);
    }
    let variables = statement.variables(message, context)?;
    let scope = Scope {
        message,
        current: None,
        variables: &variables.0,
    };
    if let Some(condition) = &statement.parts.condition
        && let (_, Some(reason)) = evaluate_condition(condition, scope, context)?
    {
        *unmet = Some(note(statement.text(), reason));
        return Ok(Outcome::NotMatched);
    }
    select::select(&statement.parts.selection, scope, context).map(Outcome::Matched)
}

/// The condition's value and, if it is not true, the smallest part that caused this.
fn evaluate_condition<'v>(
    condition: &'v Expression,
    scope: Scope<'v>,
    context: &mut Context<'_>,
) -> Result<(Value, Option<Reason>), EvaluationError> {
    match &condition.node {
        Node::Logic(Logic::And, left, right) => {
            let (left, left_reason) = evaluate_condition(left, scope, context)?;
            let (right, right_reason) = evaluate_condition(right, scope, context)?;
            let value = logic(Logic::And, &left, &right).unwrap_or_default();
            Ok((value, left_reason.or(right_reason)))
        }
        Node::Comparison(operator, left, right) => {
            let left = context.evaluate(left, scope)?;
            let right = context.evaluate(right, scope)?;
            let value = operators::compare(*operator, &left, &right).unwrap_or_default();
            let reason = (value != Value::Boolean(true)).then(|| {
                let sign = sign(*operator);
                let (left, right) = (shown(&left), shown(&right));
                format!("{left} {sign} {right} is {}", shown(&value))
            });
            Ok((value, reason.map(|text| reason_at(condition, text))))
        }
        _ => {
            let value = context.evaluate(condition, scope)?;
            let value = context.own(value)?;
            let reason = (to_boolean(&value) != Some(true))
                .then(|| reason_at(condition, format!("it is {}", shown(&value))));
            Ok((value, reason))
        }
    }
}

fn reason_at(expression: &Expression, text: String) -> Reason {
    Reason {
        span: expression.span,
        text: Cow::Owned(text),
    }
}

fn sign(operator: Comparison) -> &'static str {
    match operator {
        Comparison::Equal => "=",
        Comparison::NotEqual => "<>",
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
    }
}

fn note(text: &str, reason: Reason) -> Note {
    let place = TextPosition::of(text, reason.span.start);
    Note {
        start: reason.span.start,
        end: reason.span.end,
        line: place.line,
        column: place.column,
        text: text[reason.span.start..reason.span.end].to_owned(),
        reason: reason.text.into_owned(),
    }
}
