//! Table settings of the protocol that the engine does not use. The engine stores them with the table, as JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::insights::Insights;
use super::warm_throughput::WarmThroughput;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub(crate) struct TableSettings {
    pub(crate) billing: Billing,
    pub(crate) throughput: Throughput,
    /// The last change to on-demand billing.
    pub(crate) pay_per_request_at_ms: Option<i64>,
    pub(crate) on_demand: Option<OnDemand>,
    pub(crate) index_throughput: BTreeMap<String, Throughput>,
    /// The highest value so far, if it is above the minimum of the billing mode.
    pub(crate) warm: WarmThroughput,
    pub(crate) index_warm: BTreeMap<String, WarmThroughput>,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) deletion_protection: bool,
    pub(crate) table_class: Option<String>,
    pub(crate) encryption: Option<Encryption>,
    /// By index name; the table has an empty name.
    pub(crate) insights: BTreeMap<String, Insights>,
    /// The source, if the table was restored.
    pub(crate) restored: Option<Restored>,
}

/// The source of a restored table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Restored {
    pub(crate) backup_arn: Option<String>,
    pub(crate) table_arn: String,
    pub(crate) at_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub(crate) enum Billing {
    #[default]
    PayPerRequest,
    Provisioned,
}

/// Provisioned units. They are stored and described, but limit nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub(crate) struct Throughput {
    pub(crate) read: i64,
    pub(crate) write: i64,
    pub(crate) increased_at_ms: Option<i64>,
    pub(crate) decreased_at_ms: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub(crate) struct OnDemand {
    pub(crate) read_max: Option<i64>,
    pub(crate) write_max: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub(crate) struct Encryption {
    pub(crate) key: String,
}

impl Billing {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PayPerRequest => "PAY_PER_REQUEST",
            Self::Provisioned => "PROVISIONED",
        }
    }
}

impl TableSettings {
    /// The warm throughput of the table.
    pub(crate) fn warm_throughput(&self) -> WarmThroughput {
        let minimum = WarmThroughput::minimum(self.billing, self.throughput);
        minimum.max(self.warm)
    }

    /// The warm throughput of a global index.
    pub(crate) fn index_warm_throughput(&self, index: &str) -> WarmThroughput {
        let throughput = self.index_throughput.get(index).copied();
        let minimum = WarmThroughput::minimum(self.billing, throughput.unwrap_or_default());
        minimum.max(self.index_warm.get(index).copied().unwrap_or_default())
    }

    /// Stores the current warm throughput of the table and of these indexes, so that a change of their throughput does
    /// not lower it.
    pub(crate) fn keep_warm_throughput<'a>(&mut self, indexes: impl Iterator<Item = &'a str>) {
        self.warm = self.warm_throughput();
        for index in indexes {
            let warm = self.index_warm_throughput(index);
            self.index_warm.insert(index.to_owned(), warm);
        }
    }

    /// Parses the stored settings. A table that was not created through this protocol has none.
    pub(crate) fn read(kept: &str) -> Self {
        if kept.is_empty() {
            return Self::default();
        }
        serde_json::from_str(kept).unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read the settings of a table; using the defaults");
            Self::default()
        })
    }

    pub(crate) fn write(&self) -> String {
        serde_json::to_string(self).expect("settings have string keys only")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_round_trip() {
        let mut settings = TableSettings {
            billing: Billing::Provisioned,
            deletion_protection: true,
            ..TableSettings::default()
        };
        settings.tags.insert("owner".to_owned(), "me".to_owned());
        assert_eq!(TableSettings::read(&settings.write()), settings);
        assert_eq!(TableSettings::read(""), TableSettings::default());
        assert_eq!(TableSettings::read("nonsense"), TableSettings::default());
    }
}
