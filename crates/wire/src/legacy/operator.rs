//! The comparison operators of legacy conditions, and their expressions.

use homeport_item::expression::{Condition, Path, SortCondition};
use homeport_item::{Value, ValueKind};

use crate::failure::Failure;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    LessOrEqual,
    Less,
    GreaterOrEqual,
    Greater,
    Exists,
    NotExists,
    Contains,
    NotContains,
    BeginsWith,
    In,
    Between,
}

const NAMES: [(&str, Operator); 13] = [
    ("EQ", Operator::Equal),
    ("NE", Operator::NotEqual),
    ("LE", Operator::LessOrEqual),
    ("LT", Operator::Less),
    ("GE", Operator::GreaterOrEqual),
    ("GT", Operator::Greater),
    ("NOT_NULL", Operator::Exists),
    ("NULL", Operator::NotExists),
    ("CONTAINS", Operator::Contains),
    ("NOT_CONTAINS", Operator::NotContains),
    ("BEGINS_WITH", Operator::BeginsWith),
    ("IN", Operator::In),
    ("BETWEEN", Operator::Between),
];

impl Operator {
    pub(super) fn parse(name: &str) -> Result<Self, Failure> {
        NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, operator)| *operator)
            .ok_or_else(|| Failure::invalid_values("Invalid comparison operator"))
    }

    pub(super) fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(_, operator)| *operator == self)
            .map_or("", |(name, _)| name)
    }

    /// Checks the number of values.
    pub(super) fn check_count(self, count: usize) -> Result<(), Failure> {
        let is_valid = match self {
            Self::Exists | Self::NotExists => count == 0,
            Self::In => count > 0,
            Self::Between => count == 2,
            _ => count == 1,
        };
        if is_valid {
            return Ok(());
        }
        Err(Failure::invalid_values(format_args!(
            "Invalid number of argument(s) for the {} ComparisonOperator",
            self.name()
        )))
    }

    /// Checks the types of the values: all of them for IN, otherwise the first one.
    pub(super) fn check_kinds(self, values: &[Value]) -> Result<(), Failure> {
        let checked = if self == Self::In { values.len() } else { 1 };
        for value in values.iter().take(checked) {
            if !self.accepts(value.kind()) {
                return Err(Failure::invalid_values(format_args!(
                    "ComparisonOperator {} is not valid for {} AttributeValue type",
                    self.name(),
                    value.kind().name()
                )));
            }
        }
        Ok(())
    }

    fn accepts(self, kind: ValueKind) -> bool {
        use ValueKind::{B, Bool, N, Null, S};
        match self {
            Self::LessOrEqual
            | Self::Less
            | Self::GreaterOrEqual
            | Self::Greater
            | Self::In
            | Self::Between => matches!(kind, S | N | B),
            Self::BeginsWith => matches!(kind, S | B),
            Self::Contains | Self::NotContains => matches!(kind, S | N | B | Bool | Null),
            Self::Equal | Self::NotEqual | Self::Exists | Self::NotExists => true,
        }
    }

    /// Checks that the values have one type, and that bounds are in order.
    pub(super) fn check_together(self, values: &[Value]) -> Result<(), Failure> {
        if values
            .windows(2)
            .any(|pair| pair[0].kind() != pair[1].kind())
        {
            return Err(Failure::invalid_values(
                "AttributeValues inside AttributeValueList must be of same type",
            ));
        }
        if self == Self::Between
            && let [lower, upper] = values
            && SortCondition::Greater(upper.clone()).matches(lower)
        {
            return Err(Failure::validation(
                "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound",
            ));
        }
        Ok(())
    }

    /// The condition on an attribute. The number of values has been checked.
    pub(super) fn condition(self, name: &str, values: Vec<Value>) -> Option<Condition> {
        let path = Path::new(name);
        let mut values = values.into_iter();
        Some(match self {
            Self::Exists => Condition::Exists(path),
            Self::NotExists => Condition::NotExists(path),
            Self::In => path.is_in(values),
            Self::Between => path.between(values.next()?, values.next()?),
            Self::Equal => path.equals(values.next()?),
            Self::NotEqual => path.not_equals(values.next()?),
            Self::LessOrEqual => path.at_most(values.next()?),
            Self::Less => path.less_than(values.next()?),
            Self::GreaterOrEqual => path.at_least(values.next()?),
            Self::Greater => path.greater_than(values.next()?),
            Self::Contains => path.contains(values.next()?),
            // For a missing attribute, neither CONTAINS nor NOT_CONTAINS is true.
            Self::NotContains => {
                Condition::exists(path.clone()).and(!path.contains(values.next()?))
            }
            Self::BeginsWith => path.begins_with(values.next()?),
        })
    }

    /// The condition on a key; `None` if no query can use it.
    pub(super) fn key_condition(self, values: Vec<Value>) -> Option<SortCondition> {
        let mut values = values.into_iter();
        Some(match self {
            Self::Equal => SortCondition::Equal(values.next()?),
            Self::LessOrEqual => SortCondition::LessOrEqual(values.next()?),
            Self::Less => SortCondition::Less(values.next()?),
            Self::GreaterOrEqual => SortCondition::GreaterOrEqual(values.next()?),
            Self::Greater => SortCondition::Greater(values.next()?),
            Self::BeginsWith => SortCondition::BeginsWith(values.next()?),
            Self::Between => SortCondition::Between(values.next()?, values.next()?),
            Self::NotEqual
            | Self::Exists
            | Self::NotExists
            | Self::Contains
            | Self::NotContains
            | Self::In => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeport_item::Item;

    fn holds(operator: &str, attribute: Option<Value>, values: &[Value]) -> bool {
        let operator = Operator::parse(operator).expect("an operator");
        operator.check_count(values.len()).expect("the right count");
        let condition = operator
            .condition("a", values.to_vec())
            .expect("a condition");
        let mut item = Item::new();
        if let Some(value) = attribute {
            item.insert("a", value);
        }
        condition.matches(&item).expect("a whole item")
    }

    #[test]
    fn operators_work_as_in_dynamodb() {
        let text = |text: &str| Value::S(text.to_owned());
        let number = |number: i64| Value::from(number);
        let set = Value::string_set(["x", "y"]).expect("a set");
        let list = Value::L(vec![text("x"), number(1)]);
        for (operator, attribute, values, expected) in [
            ("EQ", Some(text("x")), vec![text("x")], true),
            (
                "EQ",
                Some(set.clone()),
                vec![Value::string_set(["y", "x"]).expect("a set")],
                true,
            ),
            ("EQ", None, vec![text("x")], false),
            ("NE", Some(text("x")), vec![text("x")], false),
            ("NE", Some(number(1)), vec![text("x")], true),
            ("NE", None, vec![text("x")], true),
            ("LE", Some(number(2)), vec![number(2)], true),
            ("LT", Some(number(2)), vec![number(2)], false),
            ("GE", Some(number(2)), vec![number(2)], true),
            ("GT", Some(number(3)), vec![number(2)], true),
            ("GT", Some(text("3")), vec![number(2)], false),
            ("NOT_NULL", Some(Value::Null), vec![], true),
            ("NOT_NULL", None, vec![], false),
            ("NULL", None, vec![], true),
            ("NULL", Some(Value::Null), vec![], false),
            ("CONTAINS", Some(text("axb")), vec![text("x")], true),
            ("CONTAINS", Some(set.clone()), vec![text("x")], true),
            ("CONTAINS", Some(list.clone()), vec![number(1)], true),
            ("CONTAINS", None, vec![text("x")], false),
            ("NOT_CONTAINS", Some(set.clone()), vec![text("x")], false),
            ("NOT_CONTAINS", Some(set), vec![text("z")], true),
            ("NOT_CONTAINS", Some(number(1)), vec![text("z")], true),
            ("NOT_CONTAINS", None, vec![text("z")], false),
            ("BEGINS_WITH", Some(text("xyz")), vec![text("xy")], true),
            ("BEGINS_WITH", Some(text("xyz")), vec![text("y")], false),
            ("IN", Some(text("b")), vec![text("a"), text("b")], true),
            ("IN", Some(text("c")), vec![text("a"), text("b")], false),
            ("BETWEEN", Some(number(2)), vec![number(1), number(2)], true),
            (
                "BETWEEN",
                Some(number(3)),
                vec![number(1), number(2)],
                false,
            ),
        ] {
            assert_eq!(
                holds(operator, attribute.clone(), &values),
                expected,
                "{attribute:?} {operator} {values:?}"
            );
        }
    }

    #[test]
    fn invalid_operands_are_rejected() {
        let text = |text: &str| Value::S(text.to_owned());
        let set = Value::string_set(["x"]).expect("a set");
        for (name, values, expected) in [
            (
                "EQ",
                vec![],
                "Invalid number of argument(s) for the EQ ComparisonOperator",
            ),
            (
                "NULL",
                vec![text("x")],
                "Invalid number of argument(s) for the NULL ComparisonOperator",
            ),
            (
                "IN",
                vec![],
                "Invalid number of argument(s) for the IN ComparisonOperator",
            ),
            (
                "BETWEEN",
                vec![text("x")],
                "Invalid number of argument(s) for the BETWEEN ComparisonOperator",
            ),
            (
                "LT",
                vec![set.clone()],
                "ComparisonOperator LT is not valid for SS AttributeValue type",
            ),
            (
                "BEGINS_WITH",
                vec![Value::from(1)],
                "ComparisonOperator BEGINS_WITH is not valid for N AttributeValue type",
            ),
            (
                "IN",
                vec![text("x"), set],
                "ComparisonOperator IN is not valid for SS AttributeValue type",
            ),
            (
                "IN",
                vec![text("x"), Value::from(1)],
                "AttributeValues inside AttributeValueList must be of same type",
            ),
        ] {
            let operator = Operator::parse(name).expect("an operator");
            let checked = operator
                .check_count(values.len())
                .and_then(|()| operator.check_kinds(&values))
                .and_then(|()| operator.check_together(&values));
            let failure = checked.expect_err("refused");
            assert_eq!(
                failure.text(),
                Some(format!("One or more parameter values were invalid: {expected}").as_str())
            );
        }
        assert_eq!(
            Operator::parse("eq").expect_err("refused").text(),
            Some("One or more parameter values were invalid: Invalid comparison operator")
        );
        let reversed = Operator::Between.check_together(&[Value::from(2), Value::from(1)]);
        assert_eq!(
            reversed.expect_err("refused").text(),
            Some(
                "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound"
            )
        );
    }
}
