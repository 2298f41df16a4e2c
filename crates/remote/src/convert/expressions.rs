//! The expression texts and placeholders of one request, printed from its trees.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use homeport_item::expression::{Condition, KeyCondition, Printer, Projection, Update};

use crate::convert::value::attribute;

/// Names of the placeholders `#n0`, `#n1`, …; `None` if there are none, as DynamoDB requires.
pub(crate) type Names = Option<HashMap<String, String>>;
/// Values of the placeholders `:v0`, `:v1`, …; `None` if there are none, as DynamoDB requires.
pub(crate) type Values = Option<HashMap<String, AttributeValue>>;

/// Prints the expressions of one request.
#[derive(Debug, Default)]
pub(crate) struct Expressions {
    printer: Printer,
}

impl Expressions {
    pub(crate) fn condition(&mut self, condition: Option<&Condition>) -> Option<String> {
        condition.map(|condition| condition.print(&mut self.printer))
    }

    pub(crate) fn key_condition(&mut self, condition: &KeyCondition) -> String {
        condition.print(&mut self.printer)
    }

    pub(crate) fn projection(&mut self, projection: Option<&Projection>) -> Option<String> {
        projection.map(|projection| projection.print(&mut self.printer))
    }

    /// `None` if the update changes nothing, because DynamoDB rejects an empty expression.
    pub(crate) fn update(&mut self, update: &Update) -> Option<String> {
        (!update.is_empty()).then(|| update.print(&mut self.printer))
    }

    pub(crate) fn placeholders(self) -> (Names, Values) {
        let (names, values) = self.printer.into_parts();
        let names = (!names.is_empty()).then(|| names.into_iter().collect());
        let values = (!values.is_empty()).then(|| {
            values
                .into_iter()
                .map(|(placeholder, value)| (placeholder, attribute(value)))
                .collect()
        });
        (names, values)
    }
}
