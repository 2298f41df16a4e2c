//! Parses conditions and filters.

use super::condition_functions::SIZE;
use super::error::{ExpressionError, ExpressionKind, ExpressionProblem};
use super::parser::{Mistake, Parser, Rank};
use super::path::Path;
use super::placeholders::Placeholders;
use super::tree::{Comparator, Condition, Operand};
use crate::value::Value;

/// Maximum number of operands in one IN list.
pub const IN_OPERANDS_MAX: usize = 100;

const COMPARATORS: [Comparator; 6] = [
    Comparator::Equal,
    Comparator::NotEqual,
    Comparator::Less,
    Comparator::LessOrEqual,
    Comparator::Greater,
    Comparator::GreaterOrEqual,
];

impl Condition {
    /// Parses a ConditionExpression.
    ///
    /// # Errors
    /// When the text is invalid, with DynamoDB's message.
    pub fn parse(text: &str, placeholders: &mut Placeholders) -> Result<Self, ExpressionError> {
        parse(ExpressionKind::Condition, text, placeholders)
    }

    /// Parses a FilterExpression.
    ///
    /// # Errors
    /// When the text is invalid, with DynamoDB's message.
    pub fn parse_filter(
        text: &str,
        placeholders: &mut Placeholders,
    ) -> Result<Self, ExpressionError> {
        parse(ExpressionKind::Filter, text, placeholders)
    }
}

pub(super) fn parse(
    kind: ExpressionKind,
    text: &str,
    placeholders: &mut Placeholders,
) -> Result<Condition, ExpressionError> {
    let mut parser = Parser::new(kind, text, placeholders)?;
    let condition = parser.condition()?;
    parser.finish()?;
    Ok(condition)
}

/// A parsed node: an operand so far, or a condition.
enum Node {
    Operand(Argument),
    Condition(Condition),
}

/// An operand or a function call. A call is an operand only if its function returns a value.
pub(super) enum Argument {
    Operand(Operand),
    /// A call of a boolean function, which is a condition itself.
    Test(&'static str, Condition),
    /// A call of a function that is unknown in conditions.
    Unknown,
}

/// A word that joins two conditions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Connective {
    And,
    Or,
}

/// An operator whose last operand is not complete yet.
enum Pending {
    Not,
    And(Condition),
    Or(Condition),
}

impl Pending {
    /// Whether the operand ends before `next`. Connectives are left-associative, and AND binds
    /// tighter than OR.
    fn ends_before(&self, next: Option<Connective>) -> bool {
        match self {
            Self::Not | Self::And(_) => true,
            Self::Or(_) => next != Some(Connective::And),
        }
    }
}

impl Parser<'_> {
    /// Parses a whole condition.
    ///
    /// IMPORTANT: this must not recurse for each parenthesis or NOT, because 4 KB of them would
    /// overflow the stack. Only operands are parsed recursively, up to `NESTING_MAX` levels.
    fn condition(&mut self) -> Result<Condition, ExpressionError> {
        // Pending operators inside the innermost open parenthesis, and outside of it.
        let mut pending = Vec::new();
        let mut outer: Vec<Vec<Pending>> = Vec::new();
        loop {
            loop {
                if self.take_keyword("NOT") {
                    self.count_operator();
                    pending.push(Pending::Not);
                } else if self.take_sign("(") {
                    outer.push(std::mem::take(&mut pending));
                } else {
                    break;
                }
            }
            let mut node = Node::Operand(self.bare_argument()?);
            // Whether the node as a whole is in parentheses.
            let mut grouped = false;
            loop {
                if let Node::Operand(argument) = node {
                    node = self.comparison(argument)?;
                    grouped &= matches!(node, Node::Operand(_));
                }
                let next = self.connective();
                while let Some(operator) = pending.pop_if(|operator| operator.ends_before(next)) {
                    let operand = Box::new(self.condition_of(node)?);
                    node = Node::Condition(match operator {
                        Pending::Not => Condition::Not(operand),
                        Pending::And(left) => Condition::And(Box::new(left), operand),
                        Pending::Or(left) => Condition::Or(Box::new(left), operand),
                    });
                    grouped = false;
                }
                if let Some(connective) = next {
                    let left = self.condition_of(node)?;
                    self.advance();
                    self.count_operator();
                    pending.push(match connective {
                        Connective::And => Pending::And(left),
                        Connective::Or => Pending::Or(left),
                    });
                    break;
                }
                let Some(around) = outer.pop() else {
                    return self.condition_of(node);
                };
                pending = around;
                self.expect_sign(")")?;
                if grouped {
                    self.note(Rank::Parentheses, ExpressionProblem::RedundantParentheses);
                }
                node = self.grouped_node(node)?;
                grouped = true;
            }
        }
    }

    /// The connective at the current token.
    fn connective(&self) -> Option<Connective> {
        if self.peek().is_keyword("AND") {
            Some(Connective::And)
        } else if self.peek().is_keyword("OR") {
            Some(Connective::Or)
        } else {
            None
        }
    }

    /// Completes a node after its closing parenthesis.
    fn grouped_node(&mut self, node: Node) -> Result<Node, ExpressionError> {
        Ok(match node {
            Node::Operand(Argument::Operand(Operand::Path(path))) => {
                Node::Operand(Argument::Operand(Operand::Path(self.path_below(path)?)))
            }
            Node::Operand(Argument::Test(_, condition)) if !self.at_comparison() => {
                Node::Condition(condition)
            }
            node => node,
        })
    }

    /// Turns a node into a condition. A lone operand is an error.
    fn condition_of(&mut self, node: Node) -> Result<Condition, ExpressionError> {
        match node {
            Node::Condition(condition) => Ok(condition),
            Node::Operand(argument) => self.lone_argument(argument),
        }
    }

    fn at_comparison(&self) -> bool {
        let token = self.peek();
        COMPARATORS
            .iter()
            .any(|comparator| token.is_sign(comparator.sign()))
            || token.is_keyword("BETWEEN")
            || token.is_keyword("IN")
    }

    /// Parses the rest of a comparison that starts with `first`, if a comparator follows.
    fn comparison(&mut self, first: Argument) -> Result<Node, ExpressionError> {
        if !self.at_comparison() {
            return Ok(Node::Operand(first));
        }
        let first = self.operand_of(first);
        let token = self.advance();
        self.count_operator();
        let condition = if token.is_keyword("BETWEEN") {
            let lower = self.operand()?;
            if !self.take_keyword("AND") {
                return Err(self.syntax_error());
            }
            let upper = self.operand()?;
            self.check_distinct("BETWEEN", &first, [&lower, &upper]);
            for operand in [&first, &lower, &upper] {
                self.check_ordered("BETWEEN", operand);
            }
            self.check_bounds(&lower, &upper);
            Condition::Between(first, lower, upper)
        } else if token.is_keyword("IN") {
            self.expect_sign("(")?;
            let choices = self.arguments(Self::operand)?;
            if choices.len() > IN_OPERANDS_MAX {
                let problem = ExpressionProblem::TooManyChoices(choices.len());
                self.note_within(Mistake::OperandCount, problem);
            }
            self.check_distinct("IN", &first, &choices);
            Condition::In(first, choices)
        } else {
            let found = COMPARATORS.iter().find(|known| known.sign() == token.text);
            let comparator = *found.ok_or_else(|| self.syntax_error())?;
            let second = self.operand()?;
            self.check_distinct(comparator.sign(), &first, [&second]);
            if !matches!(comparator, Comparator::Equal | Comparator::NotEqual) {
                self.check_ordered(comparator.sign(), &first);
                self.check_ordered(comparator.sign(), &second);
            }
            Condition::Compare(first, comparator, second)
        };
        self.condition_ends();
        Ok(Node::Condition(condition))
    }

    /// Parses an operand, with or without parentheses.
    pub(super) fn operand(&mut self) -> Result<Operand, ExpressionError> {
        let (argument, _) = self.argument()?;
        Ok(self.operand_of(argument))
    }

    fn argument(&mut self) -> Result<(Argument, bool), ExpressionError> {
        if !self.take_sign("(") {
            return Ok((self.bare_argument()?, false));
        }
        let (inner, grouped) = self.nested(Self::argument)?;
        self.expect_sign(")")?;
        if grouped {
            self.note(Rank::Parentheses, ExpressionProblem::RedundantParentheses);
        }
        let argument = match inner {
            Argument::Operand(Operand::Path(path)) => {
                Argument::Operand(Operand::Path(self.path_below(path)?))
            }
            inner => inner,
        };
        Ok((argument, true))
    }

    fn bare_argument(&mut self) -> Result<Argument, ExpressionError> {
        if self.at_call() {
            return self.call();
        }
        if self.peek().text.starts_with(':') {
            return Ok(Argument::Operand(Operand::Value(self.value()?)));
        }
        Ok(Argument::Operand(Operand::Path(self.path()?)))
    }

    /// Uses `argument` where a value is required.
    fn operand_of(&mut self, argument: Argument) -> Operand {
        match argument {
            Argument::Operand(operand) => operand,
            Argument::Test(function, _) => {
                let problem = ExpressionProblem::MisusedFunction(function.to_owned());
                self.note(Rank::MisusedFunction, problem);
                Operand::Value(Value::Bool(true))
            }
            Argument::Unknown => Operand::Value(Value::Null),
        }
    }

    /// Uses `argument` where a condition is required.
    fn lone_argument(&mut self, argument: Argument) -> Result<Condition, ExpressionError> {
        let anything = || Condition::NotExists(Path::new(""));
        let condition = match argument {
            Argument::Test(_, condition) => condition,
            Argument::Unknown => anything(),
            Argument::Operand(Operand::Size(_)) => {
                let problem = ExpressionProblem::MisusedFunction(SIZE.to_owned());
                self.note(Rank::MisusedFunction, problem);
                anything()
            }
            Argument::Operand(_) => return Err(self.syntax_error()),
        };
        Ok(condition)
    }
}
