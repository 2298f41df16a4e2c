//! How serious an alert is. Alert rules and stored telemetry use the same words.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Critical,
    /// Also of alerts and alert rules that were stored without a severity.
    #[default]
    Warning,
    Info,
}

impl Severity {
    const ALL: [Self; 3] = [Self::Critical, Self::Warning, Self::Info];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }

    /// The severity with this name.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == word)
    }
}
