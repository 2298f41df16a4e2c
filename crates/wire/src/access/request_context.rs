//! What conditions of policies can ask about a request.

/// The values of a condition key in a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Values {
    /// The request has none.
    #[default]
    Absent,
    Known(Vec<String>),
    /// The request has some that could not be read. Whatever is asked about them, the answer is the one that permits less.
    Unknown,
}

/// What is known about one action of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct RequestContext {
    /// The partition keys of the items that are asked for.
    pub(super) leading_keys: Values,
    /// The top-level attributes that the request names.
    pub(super) attributes: Values,
    pub(super) select: Values,
    pub(super) return_values: Values,
    pub(super) return_consumed_capacity: Values,
    /// The operation around this one, in transactions and statements.
    pub(super) enclosing_operation: Values,
    /// Whether a statement reads the whole table.
    pub(super) full_table_scan: Values,
}

impl RequestContext {
    /// Whether conditions can ask for a key. Ignoring one could permit more than its author meant.
    pub(super) fn knows(key: &str) -> bool {
        Self::default().find(key).is_some()
    }

    /// The values of a condition key that is known.
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
    pub(super) fn one(value: &str) -> Self {
        Self::Known(vec![value.to_owned()])
    }

    /// Values of two parts of a request together.
    pub(super) fn with(self, other: Self) -> Self {
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
