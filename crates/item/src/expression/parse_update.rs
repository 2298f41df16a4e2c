//! Parses updates, and validates update trees built in code.

use super::error::{ExpressionError, ExpressionKind, ExpressionProblem, long_name};
use super::overlap;
use super::parser::{Findings, Mistake, Parser, Rank};
use super::path::Path;
use super::placeholders::Placeholders;
use super::tree::{Update, UpdateOperand};
use crate::value::{Value, ValueKind};

const IF_NOT_EXISTS: &str = "if_not_exists";
const LIST_APPEND: &str = "list_append";
const CONDITION_FUNCTIONS: [&str; 6] = [
    "attribute_exists",
    "attribute_not_exists",
    "attribute_type",
    "begins_with",
    "contains",
    "size",
];

impl Update {
    /// Parses an UpdateExpression.
    ///
    /// # Errors
    /// When the text is invalid, with DynamoDB's message.
    pub fn parse(text: &str, placeholders: &mut Placeholders) -> Result<Self, ExpressionError> {
        let mut parser = Parser::new(ExpressionKind::Update, text, placeholders)?;
        let mut update = Self::default();
        // In the order of the text, which determines the messages and is lost in the tree.
        let mut paths = Vec::new();
        parser.sections(&mut update, &mut paths)?;
        overlap::check(&paths, parser.findings());
        check_operands(&update, parser.findings());
        parser.finish()?;
        Ok(update)
    }

    /// Validates a tree built in code with the same checks as a parsed one.
    ///
    /// # Errors
    /// When paths overlap or conflict, or an operand's type is invalid for its operator.
    pub fn check(&self) -> Result<(), ExpressionError> {
        let mut findings = Findings::default();
        overlap::check(self.paths(), &mut findings);
        check_operands(self, &mut findings);
        findings.into_result(ExpressionKind::Update)
    }

    /// The paths that the update changes.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let set = self.set.iter().map(|(path, _)| path);
        let add = self.add.iter().map(|(path, _)| path);
        let delete = self.delete.iter().map(|(path, _)| path);
        set.chain(&self.remove).chain(add).chain(delete)
    }
}

impl Parser<'_> {
    fn sections(
        &mut self,
        update: &mut Update,
        paths: &mut Vec<Path>,
    ) -> Result<(), ExpressionError> {
        const SECTIONS: [&str; 4] = ["SET", "REMOVE", "ADD", "DELETE"];
        let mut seen = [false; SECTIONS.len()];
        let mut first = true;
        loop {
            let section = SECTIONS.iter().position(|name| self.take_keyword(name));
            let Some(section) = section else {
                // An update needs at least one section. After a section, `finish` reports remaining
                // tokens.
                return if first {
                    Err(self.syntax_error())
                } else {
                    Ok(())
                };
            };
            first = false;
            if std::mem::replace(&mut seen[section], true) {
                let problem = ExpressionProblem::DuplicateSection(SECTIONS[section]);
                self.note(Rank::Section, problem);
            }
            loop {
                let path = self.path()?;
                paths.push(path.clone());
                match SECTIONS[section] {
                    "SET" => {
                        self.expect_sign("=")?;
                        let operand = self.right_hand_side()?;
                        update.set.push((path, operand));
                    }
                    "REMOVE" => update.remove.push(path),
                    "ADD" => update.add.push((path, self.value()?)),
                    _ => update.delete.push((path, self.value()?)),
                }
                if !self.take_sign(",") {
                    break;
                }
            }
        }
    }

    /// Parses an operand, or one sum or difference of two operands.
    fn right_hand_side(&mut self) -> Result<UpdateOperand, ExpressionError> {
        self.sum_or_operand().map(|(operand, _)| operand)
    }

    fn sum_or_operand(&mut self) -> Result<(UpdateOperand, bool), ExpressionError> {
        let (left, grouped) = self.optionally_grouped(Self::sum_or_operand)?;
        let join = if self.peek().is_sign("+") {
            UpdateOperand::Plus
        } else if self.peek().is_sign("-") {
            UpdateOperand::Minus
        } else {
            return Ok((left, grouped));
        };
        if is_arithmetic(&left) {
            return Err(self.syntax_error());
        }
        self.advance();
        self.count_operator();
        let right = self.update_operand()?;
        Ok((join(Box::new(left), Box::new(right)), false))
    }

    fn update_operand(&mut self) -> Result<UpdateOperand, ExpressionError> {
        self.operand_and_grouping().map(|(operand, _)| operand)
    }

    fn operand_and_grouping(&mut self) -> Result<(UpdateOperand, bool), ExpressionError> {
        self.optionally_grouped(Self::operand_and_grouping)
    }

    /// Parses a bare operand, or with `read` the contents of parentheses.
    fn optionally_grouped(
        &mut self,
        read: fn(&mut Self) -> Result<(UpdateOperand, bool), ExpressionError>,
    ) -> Result<(UpdateOperand, bool), ExpressionError> {
        if !self.take_sign("(") {
            return Ok((self.bare_update_operand()?, false));
        }
        let (inner, grouped) = self.nested(read)?;
        self.expect_sign(")")?;
        if grouped {
            self.note(Rank::Parentheses, ExpressionProblem::RedundantParentheses);
        }
        Ok((inner, true))
    }

    fn bare_update_operand(&mut self) -> Result<UpdateOperand, ExpressionError> {
        if self.at_call() {
            return self.update_call();
        }
        if self.peek().text.starts_with(':') {
            return Ok(UpdateOperand::Value(self.value()?));
        }
        Ok(UpdateOperand::Path(self.path()?))
    }

    fn update_call(&mut self) -> Result<UpdateOperand, ExpressionError> {
        let name = self.advance().text;
        self.expect_sign("(")?;
        self.count_operator();
        let arguments = self.nested(|parser| parser.arguments(Self::update_operand))?;
        let anything = UpdateOperand::Value(Value::Null);
        if name != IF_NOT_EXISTS && name != LIST_APPEND {
            let problem = if CONDITION_FUNCTIONS.contains(&name) {
                ExpressionProblem::NotInUpdates(name.to_owned())
            } else {
                ExpressionProblem::UnknownFunction(name.to_owned())
            };
            self.note(Rank::UnknownFunction, problem);
            return Ok(anything);
        }
        let Ok([first, second]) = <[UpdateOperand; 2]>::try_from(arguments).map_err(|arguments| {
            let (operator, count) = (name.to_owned(), arguments.len());
            self.note_within(
                Mistake::OperandCount,
                ExpressionProblem::OperandCount { operator, count },
            );
        }) else {
            return Ok(anything);
        };
        if name == LIST_APPEND {
            return Ok(UpdateOperand::ListAppend(Box::new(first), Box::new(second)));
        }
        let UpdateOperand::Path(path) = first else {
            let problem = ExpressionProblem::PathRequired(IF_NOT_EXISTS);
            self.note_within(Mistake::OperandType, problem);
            return Ok(anything);
        };
        Ok(UpdateOperand::IfNotExists(path, Box::new(second)))
    }
}

fn is_arithmetic(operand: &UpdateOperand) -> bool {
    matches!(operand, UpdateOperand::Plus(..) | UpdateOperand::Minus(..))
}

fn check_operands(update: &Update, findings: &mut Findings) {
    let is_set = |kind| matches!(kind, ValueKind::Ss | ValueKind::Ns | ValueKind::Bs);
    let mut refuse = |action, kind| {
        let found = long_name(kind);
        let problem = ExpressionProblem::ActionType { action, found };
        findings.note(Rank::Within(0, Mistake::ActionType), problem);
    };
    for (_, value) in &update.add {
        if value.kind() != ValueKind::N && !is_set(value.kind()) {
            refuse("ADD", value.kind());
        }
    }
    for (_, value) in &update.delete {
        if !is_set(value.kind()) {
            refuse("DELETE", value.kind());
        }
    }
    for (_, operand) in &update.set {
        check_operand(operand, findings);
    }
}

fn check_operand(operand: &UpdateOperand, findings: &mut Findings) {
    let (operator, expected, operands): (_, _, &[&UpdateOperand]) = match operand {
        UpdateOperand::Path(_) | UpdateOperand::Value(_) => return,
        UpdateOperand::IfNotExists(_, default) => (IF_NOT_EXISTS, None, &[default]),
        UpdateOperand::ListAppend(left, right) => (LIST_APPEND, Some(ValueKind::L), &[left, right]),
        UpdateOperand::Plus(left, right) => ("+", Some(ValueKind::N), &[left, right]),
        UpdateOperand::Minus(left, right) => ("-", Some(ValueKind::N), &[left, right]),
    };
    let rank = Rank::Within(0, Mistake::OperandType);
    for operand in operands {
        if operator == LIST_APPEND && matches!(operand, UpdateOperand::ListAppend(..)) {
            let problem = ExpressionProblem::MisusedFunction(LIST_APPEND.to_owned());
            findings.note(Rank::MisusedFunction, problem);
        }
        if is_arithmetic(operand) {
            findings.note(rank, ExpressionProblem::NestedArithmetic);
        } else if let (Some(found), Some(expected)) = (kind_of(operand), expected)
            && found != expected
        {
            let found = found.name();
            findings.note(rank, ExpressionProblem::OperandType { operator, found });
        }
        check_operand(operand, findings);
    }
}

/// The type of an operand, if it does not depend on the item.
fn kind_of(operand: &UpdateOperand) -> Option<ValueKind> {
    match operand {
        UpdateOperand::Path(_) | UpdateOperand::IfNotExists(..) => None,
        UpdateOperand::Value(value) => Some(value.kind()),
        UpdateOperand::ListAppend(..) => Some(ValueKind::L),
        UpdateOperand::Plus(..) | UpdateOperand::Minus(..) => Some(ValueKind::N),
    }
}
