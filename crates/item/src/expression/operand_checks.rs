//! Checks of a condition's operands that need no item.

use super::error::{ExpressionProblem, ListedPath, QuotedValue};
use super::evaluate::order;
use super::parser::{Mistake, Parser};
use super::tree::Operand;
use crate::value::ValueKind;

impl Parser<'_> {
    /// Checks that the operator accepts the operand's type, if the text determines it.
    pub(super) fn check_kind(
        &mut self,
        operator: &'static str,
        operand: &Operand,
        right: impl FnOnce(ValueKind) -> bool,
    ) {
        if let Some(kind) = kind_of(operand)
            && !right(kind)
        {
            let found = kind.name();
            let problem = ExpressionProblem::OperandType { operator, found };
            self.note_within(Mistake::OperandType, problem);
        }
    }

    /// Checks that the operand's type has an order.
    pub(super) fn check_ordered(&mut self, operator: &'static str, operand: &Operand) {
        let ordered = |kind| matches!(kind, ValueKind::S | ValueKind::N | ValueKind::B);
        self.check_kind(operator, operand, ordered);
    }

    /// Checks that no other operand is the same path as the first one.
    pub(super) fn check_distinct<'o>(
        &mut self,
        operator: &'static str,
        first: &Operand,
        rest: impl IntoIterator<Item = &'o Operand>,
    ) {
        if let Operand::Path(path) = first
            && rest.into_iter().any(|operand| operand == first)
        {
            let path = ListedPath(path.clone());
            self.note_within(
                Mistake::Distinct,
                ExpressionProblem::NotDistinct { operator, path },
            );
        }
    }

    /// Checks that two literal bounds have the same type and are in order.
    pub(super) fn check_bounds(&mut self, lower: &Operand, upper: &Operand) {
        let (Operand::Value(lower), Operand::Value(upper)) = (lower, upper) else {
            return;
        };
        let shown = || (QuotedValue(lower.clone()), QuotedValue(upper.clone()));
        if lower.kind() != upper.kind() {
            let (lower, upper) = shown();
            let problem = ExpressionProblem::BoundTypesDiffer { lower, upper };
            self.note_within(Mistake::OperandType, problem);
        } else if order(lower, upper).is_some_and(std::cmp::Ordering::is_gt) {
            let (lower, upper) = shown();
            let problem = ExpressionProblem::BoundsReversed { lower, upper };
            self.note_within(Mistake::OperandType, problem);
        }
    }
}

/// The type of an operand, if the text determines it.
pub(super) fn kind_of(operand: &Operand) -> Option<ValueKind> {
    match operand {
        Operand::Path(_) => None,
        Operand::Value(value) => Some(value.kind()),
        Operand::Size(_) => Some(ValueKind::N),
    }
}
