//! Rules from the settings and the rules file.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use homeport_systems::rules::{FILE_RULES_MAX, NewRule, RuleError};
use serde::Deserialize;

use crate::config::Settings;

/// Limit of the rules file.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A rules file, in TOML or JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    #[serde(default)]
    rules: Vec<NewRule>,
}

/// The rules of the rules file, if the settings name one.
pub(crate) fn of_file(settings: &Settings) -> anyhow::Result<Vec<NewRule>> {
    let file = settings.rules.file.as_deref();
    Ok(file.map(read).transpose()?.unwrap_or_default())
}

/// Names the rules file in an error about one of its rules.
pub(crate) fn in_file(settings: &Settings, error: &RuleError) -> anyhow::Error {
    match &settings.rules.file {
        Some(path) => anyhow!("{}: {error}", path.display()),
        None => anyhow!("{error}"),
    }
}

pub(crate) fn sns_topics(settings: &Settings) -> HashMap<String, String> {
    settings.rules.sns_topics.0.iter().cloned().collect()
}

/// Reads a rules file: JSON if its extension is json, otherwise TOML.
fn read(path: &Path) -> anyhow::Result<Vec<NewRule>> {
    let reading = || format!("reading rules from {}", path.display());
    let size = std::fs::metadata(path).with_context(reading)?.len();
    if size > FILE_BYTES_MAX {
        bail!(
            "{}: the file is larger than {FILE_BYTES_MAX} bytes",
            path.display()
        );
    }
    let text = std::fs::read_to_string(path).with_context(reading)?;
    let is_json = path
        .extension()
        .is_some_and(|extension| extension == "json");
    let file: RulesFile = if is_json {
        serde_json::from_str(&text).with_context(reading)?
    } else {
        toml::from_str(&text).with_context(reading)?
    };
    if file.rules.len() > FILE_RULES_MAX {
        bail!(
            "{}: the file has more than {FILE_RULES_MAX} rules",
            path.display()
        );
    }
    Ok(file.rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOML: &str = r#"
[[rules]]
ruleName = "copy"

[rules.topicRulePayload]
sql = "SELECT * FROM 'a/+'"
actions = [{ republish = { topic = "b", qos = 1 } }]
"#;
    const JSON: &str = r#"{"rules": [{"ruleName": "copy", "topicRulePayload": {
        "sql": "SELECT * FROM 'a/+'", "actions": [{"republish": {"topic": "b", "qos": 1}}]}}]}"#;

    fn read_text(name: &str, text: &str) -> anyhow::Result<Vec<NewRule>> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("written");
        read(&path)
    }

    #[test]
    fn rules_are_read_from_toml_and_from_json() {
        let toml = read_text("rules.toml", TOML).expect("rules");
        let json = read_text("rules.json", JSON).expect("rules");
        assert_eq!(toml, json);
        assert_eq!(toml[0].rule_name.as_str(), "copy");
    }

    #[test]
    fn error_names_the_line() {
        let wrong = TOML.replace("qos", "quality");
        let error = format!("{:#}", read_text("rules.toml", &wrong).expect_err("wrong"));
        assert!(
            error.contains("quality") && error.contains("line 7"),
            "{error}"
        );
        let error =
            read_text("rules.json", &JSON.replace("topic\"", "where\"")).expect_err("wrong");
        assert!(format!("{error:#}").contains("line 2"), "{error:#}");
    }
}
