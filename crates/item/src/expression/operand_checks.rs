//! What can be said against a condition's operands before any item is seen.

use super::error::{ListedPath, Problem, Shown};
use super::evaluate::order;
use super::parser::{Mistake, Parser};
use super::tree::Operand;
use crate::value::ValueKind;

impl Parser<'_> {
    /// The type must be one that the operator takes, as far as the text tells it.
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
            let problem = Problem::OperandType { operator, found };
            self.note_within(Mistake::OperandType, problem);
        }
    }

    /// The type must be one that has an order.
    pub(super) fn check_ordered(&mut self, operator: &'static str, operand: &Operand) {
        let ordered = |kind| matches!(kind, ValueKind::S | ValueKind::N | ValueKind::B);
        self.check_kind(operator, operand, ordered);
    }

    /// No other operand may be the path that the first one is.
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
            self.note_within(Mistake::Distinct, Problem::NotDistinct { operator, path });
        }
    }

    /// Two known bounds must be of one type and in order.
    pub(super) fn check_bounds(&mut self, lower: &Operand, upper: &Operand) {
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

/// The type of an operand, where the text alone decides it.
pub(super) fn kind_of(operand: &Operand) -> Option<ValueKind> {
    match operand {
        Operand::Path(_) => None,
        Operand::Value(value) => Some(value.kind()),
        Operand::Size(_) => Some(ValueKind::N),
    }
}
