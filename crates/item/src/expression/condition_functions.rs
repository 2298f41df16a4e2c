//! The functions of conditions.

use super::error::{ExpressionError, ExpressionProblem};
use super::evaluate::size_of;
use super::operand_checks::kind_of;
use super::parse_condition::Argument;
use super::parser::{Mistake, Parser, Rank};
use super::path::Path;
use super::tree::{Comparator, Condition, Operand};
use crate::number::Number;
use crate::value::{Value, ValueKind};

const EXISTS: &str = "attribute_exists";
const NOT_EXISTS: &str = "attribute_not_exists";
const TYPE: &str = "attribute_type";
const BEGINS_WITH: &str = "begins_with";
const CONTAINS: &str = "contains";
pub(super) const SIZE: &str = "size";
const FUNCTIONS: [&str; 6] = [EXISTS, NOT_EXISTS, TYPE, BEGINS_WITH, CONTAINS, SIZE];
const UPDATE_FUNCTIONS: [&str; 2] = ["if_not_exists", "list_append"];

impl Parser<'_> {
    /// Parses a function call.
    pub(super) fn call(&mut self) -> Result<Argument, ExpressionError> {
        let name = self.advance().text;
        self.expect_sign("(")?;
        self.count_operator();
        let arguments = self.nested(|parser| parser.arguments(Self::operand))?;
        let Some(function) = FUNCTIONS.iter().find(|known| **known == name) else {
            let name = name.to_owned();
            self.note(
                Rank::UnknownFunction,
                if UPDATE_FUNCTIONS.contains(&name.as_str()) {
                    ExpressionProblem::NotInConditions(name)
                } else {
                    ExpressionProblem::UnknownFunction(name)
                },
            );
            return Ok(Argument::Unknown);
        };
        let argument = self.apply(function, arguments);
        // `size` is an operand of the surrounding condition; all other functions are conditions.
        if *function != SIZE {
            self.condition_ends();
        }
        Ok(argument)
    }

    /// Builds the tree of a known function's call.
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
                ExpressionProblem::OperandCount { operator, count },
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
                self.note_within(
                    Mistake::OperandType,
                    ExpressionProblem::TypeName(name.clone()),
                );
                ValueKind::S
            }),
            other => {
                let found =
                    kind_of(other).map_or("{NS,SS,L,BS,N,M,B,BOOL,NULL,S}", ValueKind::name);
                let problem = ExpressionProblem::OperandType {
                    operator: TYPE,
                    found,
                };
                self.note_within(Mistake::OperandType, problem);
                ValueKind::S
            }
        };
        match operand {
            Operand::Path(path) => Condition::IsType(path, kind),
            // The type of any other operand is known now. A comparison of the operand with itself
            // gives the constant result.
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
                self.note_within(
                    Mistake::OperandType,
                    ExpressionProblem::PathRequired(function),
                );
                Path::new("")
            }
        }
    }
}
