//! Conditions and filters from text.

use super::error::{ExpressionError, ExpressionKind, ListedPath, Problem, Shown};
use super::evaluate::{order, size_of};
use super::parser::{Mistake, Parser, Rank};
use super::path::Path;
use super::placeholders::Placeholders;
use super::tree::{Comparator, Condition, Operand};
use crate::number::Number;
use crate::value::{Value, ValueKind};

/// Operands that one IN may list.
pub const CHOICES_MAX: usize = 100;

const EXISTS: &str = "attribute_exists";
const NOT_EXISTS: &str = "attribute_not_exists";
const TYPE: &str = "attribute_type";
const BEGINS_WITH: &str = "begins_with";
const CONTAINS: &str = "contains";
const SIZE: &str = "size";
const FUNCTIONS: [&str; 6] = [EXISTS, NOT_EXISTS, TYPE, BEGINS_WITH, CONTAINS, SIZE];
const UPDATE_FUNCTIONS: [&str; 2] = ["if_not_exists", "list_append"];

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
enum Argument {
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
    fn operand(&mut self) -> Result<Operand, ExpressionError> {
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

    fn call(&mut self) -> Result<Argument, ExpressionError> {
        let name = self.advance().text;
        self.expect_sign("(")?;
        self.count_operator();
        let arguments = self.nested(|parser| parser.arguments(Self::operand))?;
        let Some(function) = FUNCTIONS.iter().find(|known| **known == name) else {
            let name = name.to_owned();
            self.note(
                Rank::UnknownFunction,
                if UPDATE_FUNCTIONS.contains(&name.as_str()) {
                    Problem::NotInConditions(name)
                } else {
                    Problem::UnknownFunction(name)
                },
            );
            return Ok(Argument::Unknown);
        };
        let argument = self.apply(function, arguments);
        // `size` is part of the condition around it; the others are conditions of their own.
        if *function != SIZE {
            self.condition_ends();
        }
        Ok(argument)
    }

    /// Makes a known function's call out of what it was given.
    fn apply(&mut self, function: &'static str, mut arguments: Vec<Operand>) -> Argument {
        let count = arguments.len();
        let expected = match function {
            EXISTS | NOT_EXISTS | SIZE => 1,
            _ => 2,
        };
        if count != expected {
            let operator = function.to_owned();
            self.note_within(
                Mistake::OperandCount,
                Problem::OperandCount { operator, count },
            );
        }
        let second = (count > 1).then(|| arguments.swap_remove(1));
        let first = arguments.swap_remove(0);
        let second = second.unwrap_or(Operand::Value(Value::Null));
        if count == 2 {
            self.check_distinct(function, &first, [&second]);
        }
        match function {
            SIZE => Argument::Operand(self.size(first)),
            EXISTS => Argument::Test(function, Condition::Exists(self.path_of(function, first))),
            NOT_EXISTS => Argument::Test(
                function,
                Condition::NotExists(self.path_of(function, first)),
            ),
            TYPE => Argument::Test(function, self.is_type(first, &second)),
            BEGINS_WITH => {
                for operand in [&first, &second] {
                    let right = |kind| matches!(kind, ValueKind::S | ValueKind::B);
                    self.check_kind(BEGINS_WITH, operand, right);
                }
                Argument::Test(function, Condition::BeginsWith(first, second))
            }
            _ => Argument::Test(function, Condition::Contains(first, second)),
        }
    }

    fn size(&mut self, operand: Operand) -> Operand {
        let right = |kind| !matches!(kind, ValueKind::N | ValueKind::Bool | ValueKind::Null);
        self.check_kind(SIZE, &operand, right);
        match operand {
            Operand::Path(path) => Operand::Size(path),
            Operand::Value(value) => {
                Operand::Value(size_of(&value).map_or(Value::N(Number::ZERO), Value::N))
            }
            Operand::Size(_) => operand,
        }
    }

    fn is_type(&mut self, operand: Operand, name: &Operand) -> Condition {
        let kind = match name {
            Operand::Value(Value::S(name)) => ValueKind::from_name(name).unwrap_or_else(|| {
                self.note_within(Mistake::OperandType, Problem::TypeName(name.clone()));
                ValueKind::S
            }),
            other => {
                let found =
                    kind_of(other).map_or("{NS,SS,L,BS,N,M,B,BOOL,NULL,S}", ValueKind::name);
                let problem = Problem::OperandType {
                    operator: TYPE,
                    found,
                };
                self.note_within(Mistake::OperandType, problem);
                ValueKind::S
            }
        };
        match operand {
            Operand::Path(path) => Condition::IsType(path, kind),
            // The type of anything else is known here, and comparing it with itself says so.
            known => {
                let comparator = match kind_of(&known) == Some(kind) {
                    true => Comparator::Equal,
                    false => Comparator::NotEqual,
                };
                Condition::Compare(known.clone(), comparator, known)
            }
        }
    }

    fn path_of(&mut self, function: &'static str, operand: Operand) -> Path {
        match operand {
            Operand::Path(path) => path,
            _ => {
                self.note_within(Mistake::OperandType, Problem::PathRequired(function));
                Path::new("")
            }
        }
    }

    fn check_kind(
        &mut self,
        operator: &'static str,
        operand: &Operand,
        right: impl FnOnce(ValueKind) -> bool,
    ) {
        if let Some(kind) = kind_of(operand)
            && !right(kind)
        {
            let found = kind.name();
            let problem = Problem::OperandType { operator, found };
            self.note_within(Mistake::OperandType, problem);
        }
    }

    fn check_ordered(&mut self, operator: &'static str, operand: &Operand) {
        let ordered = |kind| matches!(kind, ValueKind::S | ValueKind::N | ValueKind::B);
        self.check_kind(operator, operand, ordered);
    }

    fn check_distinct<'o>(
        &mut self,
        operator: &'static str,
        first: &Operand,
        rest: impl IntoIterator<Item = &'o Operand>,
    ) {
        if let Operand::Path(path) = first
            && rest.into_iter().any(|operand| operand == first)
        {
            let path = ListedPath(path.clone());
            self.note_within(Mistake::Distinct, Problem::NotDistinct { operator, path });
        }
    }

    fn check_bounds(&mut self, lower: &Operand, upper: &Operand) {
        let (Operand::Value(lower), Operand::Value(upper)) = (lower, upper) else {
            return;
        };
        let shown = || (Shown(lower.clone()), Shown(upper.clone()));
        if lower.kind() != upper.kind() {
            let (lower, upper) = shown();
            let problem = Problem::BoundsOfTwoTypes { lower, upper };
            self.note_within(Mistake::OperandType, problem);
        } else if order(lower, upper).is_some_and(std::cmp::Ordering::is_gt) {
            let (lower, upper) = shown();
            let problem = Problem::BoundsReversed { lower, upper };
            self.note_within(Mistake::OperandType, problem);
        }
    }
}

fn operand_node(operand: Operand) -> Node {
    Node::Operand(Argument::Operand(operand))
}

/// The type of an operand, where the text alone decides it.
fn kind_of(operand: &Operand) -> Option<ValueKind> {
    match operand {
        Operand::Path(_) => None,
        Operand::Value(value) => Some(value.kind()),
        Operand::Size(_) => Some(ValueKind::N),
    }
}
