//! Conditions of policies.

use super::pattern;
use super::policy::{Effect, PolicyError};
use super::request_context::{RequestContext, Values};

/// One condition: a key, an operator and the expected values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    key: String,
    operator: Operator,
    wanted: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Operator {
    quantifier: Quantifier,
    comparison: Comparison,
    negated: bool,
    /// The condition holds if the request does not have the key.
    if_exists: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quantifier {
    Single,
    ForAllValues,
    ForAnyValue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equals,
    EqualsIgnoringCase,
    Like,
    /// Whether the key is absent.
    Null,
}

impl Operator {
    fn parse(text: &str) -> Option<Self> {
        let (quantifier, rest) = match text.split_once(':') {
            None => (Quantifier::Single, text),
            Some(("ForAllValues", rest)) => (Quantifier::ForAllValues, rest),
            Some(("ForAnyValue", rest)) => (Quantifier::ForAnyValue, rest),
            Some(_) => return None,
        };
        let (rest, if_exists) = match rest.strip_suffix("IfExists") {
            Some(rest) => (rest, true),
            None => (rest, false),
        };
        let (comparison, negated) = match rest {
            "StringEquals" => (Comparison::Equals, false),
            "StringNotEquals" => (Comparison::Equals, true),
            "StringEqualsIgnoreCase" | "Bool" => (Comparison::EqualsIgnoringCase, false),
            "StringNotEqualsIgnoreCase" => (Comparison::EqualsIgnoringCase, true),
            "StringLike" => (Comparison::Like, false),
            "StringNotLike" => (Comparison::Like, true),
            "Null" if !if_exists && quantifier == Quantifier::Single => (Comparison::Null, false),
            _ => return None,
        };
        Some(Self {
            quantifier,
            comparison,
            negated,
            if_exists,
        })
    }
}

impl Condition {
    pub(super) fn new(
        operator: &str,
        key: &str,
        wanted: Vec<String>,
        user_name: &str,
    ) -> Result<Self, PolicyError> {
        let operator =
            Operator::parse(operator).ok_or_else(|| PolicyError::Operator(operator.to_owned()))?;
        if !RequestContext::knows(key) {
            return Err(PolicyError::Key(key.to_owned()));
        }
        let wanted = wanted
            .iter()
            .map(|text| pattern::replace_variables(text, user_name).map_err(PolicyError::Variable))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            key: key.to_owned(),
            operator,
            wanted,
        })
    }

    /// Whether the condition holds. Unknown values count against the request: no condition of an Allow holds, and every condition
    /// of a Deny does.
    pub(super) fn holds(&self, context: &RequestContext, effect: Effect) -> bool {
        let values = context.values(&self.key);
        if self.operator.comparison == Comparison::Null {
            let wants_absent = self.wanted.iter().any(|text| text == "true");
            return match values {
                Values::Unknown => effect == Effect::Deny,
                _ => (*values == Values::Absent) == wants_absent,
            };
        }
        match values {
            Values::Unknown => effect == Effect::Deny,
            Values::Absent => {
                self.operator.if_exists
                    || match self.operator.quantifier {
                        Quantifier::ForAllValues => true,
                        Quantifier::ForAnyValue => false,
                        // A missing key differs from every value.
                        Quantifier::Single => self.operator.negated,
                    }
            }
            Values::Known(values) => match self.operator.quantifier {
                Quantifier::ForAllValues | Quantifier::Single => {
                    values.iter().all(|value| self.fits(value))
                }
                Quantifier::ForAnyValue => values.iter().any(|value| self.fits(value)),
            },
        }
    }

    fn fits(&self, value: &str) -> bool {
        let found = self
            .wanted
            .iter()
            .any(|wanted| match self.operator.comparison {
                Comparison::Equals => wanted == value,
                Comparison::EqualsIgnoringCase => wanted.eq_ignore_ascii_case(value),
                Comparison::Like => pattern::matches(wanted, value),
                Comparison::Null => false,
            });
        found != self.operator.negated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(operator: &str, wanted: &[&str], keys: Values, effect: Effect) -> bool {
        let wanted = wanted.iter().map(|text| (*text).to_owned()).collect();
        let condition = Condition::new(operator, "dynamodb:leadingkeys", wanted, "ann");
        let context = RequestContext {
            leading_keys: keys,
            ..RequestContext::default()
        };
        condition.expect("a condition").holds(&context, effect)
    }

    #[test]
    fn operators_compare_as_in_iam() {
        let known =
            |keys: &[&str]| Values::Known(keys.iter().map(|key| (*key).to_owned()).collect());
        for (operator, wanted, keys, expected) in [
            (
                "ForAllValues:StringEquals",
                &["ann"][..],
                known(&["ann"]),
                true,
            ),
            (
                "ForAllValues:StringEquals",
                &["${aws:username}"],
                known(&["ann", "ann"]),
                true,
            ),
            (
                "ForAllValues:StringEquals",
                &["ann"],
                known(&["ann", "bob"]),
                false,
            ),
            ("ForAllValues:StringEquals", &["ann"], Values::Absent, true),
            (
                "ForAllValues:StringLike",
                &["a*"],
                known(&["ann", "al"]),
                true,
            ),
            ("ForAllValues:StringLike", &["a*"], known(&["bob"]), false),
            (
                "ForAllValues:StringNotEquals",
                &["bob"],
                known(&["ann"]),
                true,
            ),
            (
                "ForAnyValue:StringEquals",
                &["bob"],
                known(&["ann", "bob"]),
                true,
            ),
            ("ForAnyValue:StringEquals", &["bob"], Values::Absent, false),
            ("StringEquals", &["ann"], known(&["ann"]), true),
            ("StringEquals", &["ann"], Values::Absent, false),
            ("StringEqualsIfExists", &["ann"], Values::Absent, true),
            ("StringEqualsIfExists", &["ann"], known(&["bob"]), false),
            ("StringNotEquals", &["ann"], Values::Absent, true),
            ("StringEqualsIgnoreCase", &["ANN"], known(&["ann"]), true),
            ("Bool", &["true"], known(&["TRUE"]), true),
            ("Null", &["true"], Values::Absent, true),
            ("Null", &["false"], known(&["ann"]), true),
            ("Null", &["true"], known(&["ann"]), false),
        ] {
            let held = holds(operator, wanted, keys.clone(), Effect::Allow);
            assert_eq!(held, expected, "{operator} {wanted:?} {keys:?}");
        }
    }

    #[test]
    fn unknown_values_permit_nothing() {
        for operator in [
            "ForAllValues:StringEquals",
            "StringNotEquals",
            "StringEqualsIfExists",
            "Null",
        ] {
            assert!(
                !holds(operator, &["false"], Values::Unknown, Effect::Allow),
                "{operator}"
            );
            assert!(
                holds(operator, &["false"], Values::Unknown, Effect::Deny),
                "{operator}"
            );
        }
    }

    #[test]
    fn unknown_operators_are_rejected() {
        for operator in [
            "NumericEquals",
            "ForSomeValues:StringEquals",
            "stringequals",
            "NullIfExists",
        ] {
            let refused = Condition::new(operator, "k", Vec::new(), "ann");
            assert_eq!(refused, Err(PolicyError::Operator(operator.to_owned())));
        }
    }
}
