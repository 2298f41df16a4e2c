//! Contributor insights of tables and indexes: a setting that clients make and look at.
//!
//! DIFFERENCE: DynamoDB has CloudWatch count which keys are used most. Here the setting is kept and told, and nothing is counted.

use homeport_engine::TableDescription;
use serde::{Deserialize, Serialize};

use super::settings::TableSettings;
use crate::failure::Failure;
use crate::input::Text;
use crate::output::Object;

pub(crate) const ACTIONS: [&str; 2] = ["ENABLE", "DISABLE"];
pub(crate) const MODES: [&str; 2] = ["ACCESSED_AND_THROTTLED_KEYS", "THROTTLED_KEYS"];

/// What was last asked for a table or one of its indexes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Insights {
    pub(crate) is_enabled: bool,
    pub(crate) mode: String,
    pub(crate) changed_at_ms: i64,
}

/// What insights are about: a table, or one of its global indexes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) table: &'a str,
    pub(crate) index: Option<&'a str>,
}

impl<'a> Subject<'a> {
    /// The index that is named, if any, must be one of the table's.
    pub(crate) fn of(
        table: &'a TableDescription,
        index: Option<&'a Text<'_>>,
    ) -> Result<Self, Failure> {
        let index = index.map(Text::as_str);
        if let Some(name) = index
            && table.schema.index(name).is_none_or(|index| index.local)
        {
            return Err(Failure::not_found(format!(
                "Requested resource not found: Index: {name} not found"
            )));
        }
        Ok(Self {
            table: &table.schema.name,
            index,
        })
    }

    /// The name that its insights are kept under; no index has an empty one.
    pub(crate) fn key(self) -> &'a str {
        self.index.unwrap_or_default()
    }

    pub(crate) fn insights(self, settings: &TableSettings) -> Option<&Insights> {
        settings.insights.get(self.key())
    }

    /// Writes what it is and how its insights stand.
    pub(crate) fn write(self, object: &mut Object<'_>, status: &str) {
        object.text("TableName", self.table);
        if let Some(index) = self.index {
            object.text("IndexName", index);
        }
        object.text("ContributorInsightsStatus", status);
    }
}

impl Insights {
    pub(crate) fn status(&self) -> &'static str {
        if self.is_enabled {
            "ENABLED"
        } else {
            "DISABLED"
        }
    }
}
