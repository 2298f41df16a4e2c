//! The condition keys of a request.

use crate::input::Text;

/// The values of a condition key in a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Values {
    /// The request has no such key.
    #[default]
    Absent,
    Known(Vec<String>),
    /// The request has invalid values. Every condition is then evaluated so that less is permitted.
    Unknown,
}

/// The condition keys of one action of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RequestContext {
    /// The partition keys of the requested items.
    pub(crate) leading_keys: Values,
    /// The top-level attributes that the request names.
    pub(crate) attributes: Values,
    pub(crate) select: Values,
    pub(crate) return_values: Values,
    pub(crate) return_consumed_capacity: Values,
    /// The enclosing operation of a transaction or statement.
    pub(crate) enclosing_operation: Values,
    /// Whether a statement reads the whole table.
    pub(crate) full_table_scan: Values,
}

impl RequestContext {
    /// Whether a condition key is supported. Ignoring an unknown key could permit more than intended.
    pub(super) fn knows(key: &str) -> bool {
        Self::default().find(key).is_some()
    }

    /// The values of a supported condition key.
    pub(super) fn values(&self, key: &str) -> &Values {
        const ABSENT: &Values = &Values::Absent;
        self.find(key).unwrap_or(ABSENT)
    }

    fn find(&self, key: &str) -> Option<&Values> {
        let known: [(&str, &Values); 7] = [
            ("dynamodb:LeadingKeys", &self.leading_keys),
            ("dynamodb:Attributes", &self.attributes),
            ("dynamodb:Select", &self.select),
            ("dynamodb:ReturnValues", &self.return_values),
            (
                "dynamodb:ReturnConsumedCapacity",
                &self.return_consumed_capacity,
            ),
            ("dynamodb:EnclosingOperation", &self.enclosing_operation),
            ("dynamodb:FullTableScan", &self.full_table_scan),
        ];
        known
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(key))
            .map(|(_, values)| *values)
    }
}

impl Values {
    pub(crate) fn one(value: &str) -> Self {
        Self::Known(vec![value.to_owned()])
    }

    /// The value of a member of the request.
    pub(crate) fn given(member: Option<&Text<'_>>) -> Self {
        member.map_or(Self::Absent, |text| Self::one(text.as_str()))
    }

    /// `ReturnValuesOnConditionCheckFailure` as a value of `ReturnValues`: it returns the whole old item too.
    pub(crate) fn returned_on_failure(member: Option<&Text<'_>>) -> Self {
        Self::given(member.filter(|text| text.as_str() == "ALL_OLD"))
    }

    /// `Select`, or its default.
    pub(crate) fn select(given: Option<&Text<'_>>, names_attributes: bool, index: bool) -> Self {
        match given {
            Some(select) => Self::one(select.as_str()),
            None if names_attributes => Self::one("SPECIFIC_ATTRIBUTES"),
            None if index => Self::one("ALL_PROJECTED_ATTRIBUTES"),
            None => Self::one("ALL_ATTRIBUTES"),
        }
    }

    /// The values of two parts of a request.
    pub(crate) fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Absent, values) | (values, Self::Absent) => values,
            (Self::Known(mut values), Self::Known(others)) => {
                values.extend(others);
                Self::Known(values)
            }
        }
    }
}
