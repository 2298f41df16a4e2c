//! Prints trees as text. Every name and value becomes a placeholder, so none can be mistaken for
//! syntax.

use std::collections::{BTreeMap, HashMap};

use super::path::{Path, PathElement};
use super::tree::{
    Condition, KeyCondition, Operand, Projection, SortCondition, Update, UpdateOperand,
};
use crate::value::Value;

/// Allocates the placeholders of one request. The same name or value gets the same placeholder in
/// all its expressions.
#[derive(Debug, Clone, Default)]
pub struct Printer {
    names: HashMap<String, String>,
    values: HashMap<Value, String>,
}

impl Printer {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The names and the values behind the placeholders.
    #[must_use]
    pub fn into_parts(self) -> (BTreeMap<String, String>, BTreeMap<String, Value>) {
        let turn = |(name, placeholder)| (placeholder, name);
        let names = self.names.into_iter().map(turn).collect();
        let turn = |(value, placeholder)| (placeholder, value);
        (names, self.values.into_iter().map(turn).collect())
    }

    fn name(&mut self, name: &str) -> String {
        let next = self.names.len();
        let placeholder = self.names.entry(name.to_owned());
        placeholder.or_insert_with(|| format!("#n{next}")).clone()
    }

    fn value(&mut self, value: &Value) -> String {
        let next = self.values.len();
        let placeholder = self.values.entry(value.clone());
        placeholder.or_insert_with(|| format!(":v{next}")).clone()
    }

    fn path(&mut self, path: &Path) -> String {
        let mut text = self.name(path.name());
        for element in path.nested() {
            match element {
                PathElement::Name(name) => text += &format!(".{}", self.name(name)),
                PathElement::Index(index) => text += &format!("[{index}]"),
            }
        }
        text
    }

    fn operand(&mut self, operand: &Operand) -> String {
        match operand {
            Operand::Path(path) => self.path(path),
            Operand::Value(value) => self.value(value),
            Operand::Size(path) => format!("size({})", self.path(path)),
        }
    }

    fn update_operand(&mut self, operand: &UpdateOperand) -> String {
        match operand {
            UpdateOperand::Path(path) => self.path(path),
            UpdateOperand::Value(value) => self.value(value),
            UpdateOperand::IfNotExists(path, default) => {
                let path = self.path(path);
                format!("if_not_exists({path}, {})", self.update_operand(default))
            }
            UpdateOperand::ListAppend(left, right) => {
                let left = self.update_operand(left);
                format!("list_append({left}, {})", self.update_operand(right))
            }
            UpdateOperand::Plus(left, right) => {
                let left = self.update_operand(left);
                format!("{left} + {}", self.update_operand(right))
            }
            UpdateOperand::Minus(left, right) => {
                let left = self.update_operand(left);
                format!("{left} - {}", self.update_operand(right))
            }
        }
    }

    fn joined<T>(&mut self, parts: &[T], print: impl Fn(&mut Self, &T) -> String) -> String {
        let parts: Vec<String> = parts.iter().map(|part| print(self, part)).collect();
        parts.join(", ")
    }

    /// Prints an operand of a connective, in parentheses if the connective binds tighter.
    fn part(&mut self, part: &Condition, loose: fn(&Condition) -> bool) -> String {
        let text = part.print(self);
        if loose(part) {
            format!("({text})")
        } else {
            text
        }
    }
}

impl Condition {
    /// The condition as a ConditionExpression or FilterExpression.
    pub fn print(&self, printer: &mut Printer) -> String {
        match self {
            Self::Compare(left, comparator, right) => {
                let left = printer.operand(left);
                format!("{left} {} {}", comparator.sign(), printer.operand(right))
            }
            Self::Between(operand, lower, upper) => {
                let operand = printer.operand(operand);
                let lower = printer.operand(lower);
                format!("{operand} BETWEEN {lower} AND {}", printer.operand(upper))
            }
            Self::In(operand, choices) => {
                let operand = printer.operand(operand);
                format!(
                    "{operand} IN ({})",
                    printer.joined(choices, Printer::operand)
                )
            }
            Self::Exists(path) => format!("attribute_exists({})", printer.path(path)),
            Self::NotExists(path) => format!("attribute_not_exists({})", printer.path(path)),
            Self::IsType(path, kind) => {
                let path = printer.path(path);
                let kind = printer.value(&Value::from(kind.name()));
                format!("attribute_type({path}, {kind})")
            }
            Self::BeginsWith(operand, prefix) => {
                let operand = printer.operand(operand);
                format!("begins_with({operand}, {})", printer.operand(prefix))
            }
            Self::Contains(operand, part) => {
                let operand = printer.operand(operand);
                format!("contains({operand}, {})", printer.operand(part))
            }
            // Chains are left-associative, so only a right operand of the same kind needs
            // parentheses.
            Self::And(left, right) => {
                let left = printer.part(left, |part| matches!(part, Self::Or(..)));
                let loose = |part: &Self| matches!(part, Self::Or(..) | Self::And(..));
                format!("{left} AND {}", printer.part(right, loose))
            }
            Self::Or(left, right) => {
                let left = left.print(printer);
                let loose = |part: &Self| matches!(part, Self::Or(..));
                format!("{left} OR {}", printer.part(right, loose))
            }
            Self::Not(condition) => {
                let loose =
                    |part: &Self| matches!(part, Self::Or(..) | Self::And(..) | Self::Not(_));
                format!("NOT {}", printer.part(condition, loose))
            }
        }
    }
}

impl Update {
    /// The update as an UpdateExpression; empty if it changes nothing.
    pub fn print(&self, printer: &mut Printer) -> String {
        let assignment = |printer: &mut Printer, (path, operand): &(Path, UpdateOperand)| {
            let path = printer.path(path);
            format!("{path} = {}", printer.update_operand(operand))
        };
        let action = |printer: &mut Printer, (path, value): &(Path, Value)| {
            let path = printer.path(path);
            format!("{path} {}", printer.value(value))
        };
        let sections = [
            ("SET", printer.joined(&self.set, assignment)),
            ("REMOVE", printer.joined(&self.remove, Printer::path)),
            ("ADD", printer.joined(&self.add, action)),
            ("DELETE", printer.joined(&self.delete, action)),
        ];
        let written = sections.iter().filter(|(_, text)| !text.is_empty());
        let written: Vec<_> = written
            .map(|(name, text)| format!("{name} {text}"))
            .collect();
        written.join(" ")
    }
}

impl KeyCondition {
    /// The condition as a KeyConditionExpression.
    pub fn print(&self, printer: &mut Printer) -> String {
        let name = printer.name(&self.partition_name);
        let mut partition = format!("{name} = {}", printer.value(&self.partition));
        for (name, value) in &self.rest {
            let name = printer.name(name);
            partition.push_str(&format!(" AND {name} = {}", printer.value(value)));
        }
        let Some((name, condition)) = &self.sort else {
            return partition;
        };
        let name = printer.name(name);
        let sort = match condition {
            SortCondition::Equal(value) => format!("{name} = {}", printer.value(value)),
            SortCondition::Less(value) => format!("{name} < {}", printer.value(value)),
            SortCondition::LessOrEqual(value) => format!("{name} <= {}", printer.value(value)),
            SortCondition::Greater(value) => format!("{name} > {}", printer.value(value)),
            SortCondition::GreaterOrEqual(value) => format!("{name} >= {}", printer.value(value)),
            SortCondition::Between(lower, upper) => {
                let lower = printer.value(lower);
                format!("{name} BETWEEN {lower} AND {}", printer.value(upper))
            }
            SortCondition::BeginsWith(prefix) => {
                format!("begins_with({name}, {})", printer.value(prefix))
            }
        };
        format!("{partition} AND {sort}")
    }
}

impl Projection {
    /// The projection as a ProjectionExpression.
    pub fn print(&self, printer: &mut Printer) -> String {
        printer.joined(&self.paths, Printer::path)
    }
}
