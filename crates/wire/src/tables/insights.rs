//! Contributor insights of tables and indexes.
//!
//! DIFFERENCE: in DynamoDB, CloudWatch counts the most used keys. Here the setting is only stored and described.

use homeport_engine::TableDescription;
use serde::{Deserialize, Serialize};

use super::settings::TableSettings;
use crate::failure::Failure;
use crate::input::Text;
use crate::output::Object;

pub(crate) const ACTIONS: [&str; 2] = ["ENABLE", "DISABLE"];
pub(crate) const MODES: [&str; 2] = ["ACCESSED_AND_THROTTLED_KEYS", "THROTTLED_KEYS"];

/// The last setting of a table or an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Insights {
    pub(crate) is_enabled: bool,
    pub(crate) mode: String,
    pub(crate) changed_at_ms: i64,
}

/// A table or one of its global indexes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) table: &'a str,
    pub(crate) index: Option<&'a str>,
}

impl<'a> Subject<'a> {
    /// The subject of a request. A named index must be a global index of the table.
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

    /// The key of its insights in the settings: the name of the index, or empty for the table.
    pub(crate) fn key(self) -> &'a str {
        self.index.unwrap_or_default()
    }

    pub(crate) fn insights(self, settings: &TableSettings) -> Option<&Insights> {
        settings.insights.get(self.key())
    }

    /// Writes the names and the status of the insights.
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
