//! Conditions and filters from text.

use super::condition_functions::SIZE;
use super::error::{ExpressionError, ExpressionKind, Problem};
use super::parser::{Mistake, Parser, Rank};
use super::path::Path;
use super::placeholders::Placeholders;
use super::tree::{Comparator, Condition, Operand};
use crate::value::Value;

/// Operands that one IN may list.
pub const CHOICES_MAX: usize = 100;

const COMPARATORS: [Comparator; 6] = [
    Comparator::Equal,
    Comparator::NotEqual,
    Comparator::Less,
    Comparator::LessOrEqual,
    Comparator::Greater,
    Comparator::GreaterOrEqual,
];

impl Condition {
    /// Reads a ConditionExpression.
    ///
    /// # Errors
    /// When it is none, with DynamoDB's message.
    pub fn parse(text: &str, placeholders: &mut Placeholders) -> Result<Self, ExpressionError> {
        parse(ExpressionKind::Condition, text, placeholders)
    }

    /// Reads a FilterExpression.
    ///
    /// # Errors
    /// When it is none, with DynamoDB's message.
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
    let condition = parser.condition(Binding::Or)?;
    parser.finish()?;
    Ok(condition)
}

/// What was read: as yet an operand, or a condition.
enum Node {
    Operand(Argument),
    Condition(Condition),
}

/// An operand, or a call that is one only if its function returns a value.
pub(super) enum Argument {
    Operand(Operand),
    /// A call of a function that is a condition by itself.
    Test(&'static str, Condition),
    /// A call of a function that conditions do not have.
    Unknown,
}

/// How tightly a connective holds its conditions together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Or,
    And,
    Not,
}

impl Parser<'_> {
    fn condition(&mut self, binding: Binding) -> Result<Condition, ExpressionError> {
        match self.node(binding)?.0 {
            Node::Condition(condition) => Ok(condition),
            Node::Operand(argument) => self.lone_argument(argument),
        }
    }

    /// Reads what holds together at least as tightly as `binding`, and tells whether it is one
    /// thing in parentheses.
    fn node(&mut self, binding: Binding) -> Result<(Node, bool), ExpressionError> {
        let (mut left, mut grouped) = self.unary()?;
        loop {
            let (next, join): (_, fn(_, _) -> _) = if self.peek().is_keyword("AND") {
                (Binding::And, Condition::And)
            } else if self.peek().is_keyword("OR") {
                (Binding::Or, Condition::Or)
            } else {
                return Ok((left, grouped));
            };
            if next < binding {
                return Ok((left, grouped));
            }
            let condition = match left {
                Node::Condition(condition) => condition,
                Node::Operand(argument) => self.lone_argument(argument)?,
            };
            self.advance();
            self.count_operator();
            // Connectives of one kind group from the left: the right side must hold tighter.
            let tighter = match next {
                Binding::Or => Binding::And,
                Binding::And | Binding::Not => Binding::Not,
            };
            let right = self.condition(tighter)?;
            left = Node::Condition(join(Box::new(condition), Box::new(right)));
            grouped = false;
        }
    }

    fn unary(&mut self) -> Result<(Node, bool), ExpressionError> {
        if self.take_keyword("NOT") {
            self.count_operator();
            let condition = self.nested(|parser| parser.condition(Binding::Not))?;
            let condition = Condition::Not(Box::new(condition));
            return Ok((Node::Condition(condition), false));
        }
        let (first, grouped) = self.primary()?;
        match first {
            Node::Operand(argument) => match self.comparison(argument)? {
                Node::Operand(argument) => Ok((Node::Operand(argument), grouped)),
                compared => Ok((compared, false)),
            },
            Node::Condition(_) => Ok((first, grouped)),
        }
    }

    /// Reads an operand, a call, or either or a whole condition in parentheses.
    fn primary(&mut self) -> Result<(Node, bool), ExpressionError> {
        if !self.take_sign("(") {
            return Ok((Node::Operand(self.bare_argument()?), false));
        }
        let (inner, grouped) = self.nested(|parser| parser.node(Binding::Or))?;
        self.expect_sign(")")?;
        if grouped {
            self.note(Rank::Parentheses, Problem::RedundantParentheses);
        }
        match inner {
            Node::Operand(Argument::Operand(Operand::Path(path))) => {
                let path = self.path_below(path)?;
                Ok((operand_node(Operand::Path(path)), true))
            }
            Node::Operand(Argument::Test(_, condition)) if !self.at_comparison() => {
                Ok((Node::Condition(condition), true))
            }
            inner => Ok((inner, true)),
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

    /// Reads the rest of a comparison that starts with `first`, if it is one.
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
            if choices.len() > CHOICES_MAX {
                let problem = Problem::TooManyChoices(choices.len());
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

    /// Reads an operand, perhaps in parentheses.
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
            self.note(Rank::Parentheses, Problem::RedundantParentheses);
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

    /// What stands where a value is needed.
    fn operand_of(&mut self, argument: Argument) -> Operand {
        match argument {
            Argument::Operand(operand) => operand,
            Argument::Test(function, _) => {
                let problem = Problem::MisusedFunction(function.to_owned());
                self.note(Rank::MisusedFunction, problem);
                Operand::Value(Value::Bool(true))
            }
            Argument::Unknown => Operand::Value(Value::Null),
        }
    }

    /// What stands where a condition is needed.
    fn lone_argument(&mut self, argument: Argument) -> Result<Condition, ExpressionError> {
        let anything = || Condition::NotExists(Path::new(""));
        let condition = match argument {
            Argument::Test(_, condition) => condition,
            Argument::Unknown => anything(),
            Argument::Operand(Operand::Size(_)) => {
                let problem = Problem::MisusedFunction(SIZE.to_owned());
                self.note(Rank::MisusedFunction, problem);
                anything()
            }
            Argument::Operand(_) => return Err(self.syntax_error()),
        };
        Ok(condition)
    }
}

fn operand_node(operand: Operand) -> Node {
    Node::Operand(Argument::Operand(operand))
}
