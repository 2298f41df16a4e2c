//! Formats rules.

use serde_json::Value;

/// One line for each rule.
pub(super) fn list(rules: &[Value]) -> String {
    if rules.is_empty() {
        return "there are no rules\n".to_owned();
    }
    let text = |rule: &Value, member: &str| rule[member].as_str().unwrap_or_default().to_owned();
    let width = rules.iter().map(|rule| text(rule, "ruleName").len()).max();
    let width = width.unwrap_or_default();
    let lines = rules.iter().map(|rule| {
        let state = match (&rule["problem"], &rule["ruleDisabled"]) {
            (Value::String(_), _) => "cannot run",
            (_, Value::Bool(true)) => "disabled",
            _ => "enabled",
        };
        let version = match text(rule, "source").as_str() {
            "file" => "file".to_owned(),
            _ => format!("v{}", rule["version"]),
        };
        let description = text(rule, "description");
        let line = format!(
            "{:width$}  {version:>5}  {state:10}  {description}",
            text(rule, "ruleName")
        );
        format!("{}\n", line.trim_end())
    });
    lines.collect()
}

/// A complete rule, as the HTTP interface returns it.
pub(super) fn rule(rule: &Value) -> anyhow::Result<String> {
    Ok(format!("{}\n", serde_json::to_string_pretty(rule)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn list_shows_the_state_of_rules() {
        let rules = [
            json!({"ruleName": "a", "version": 3, "ruleDisabled": false, "source": "store", "description": "all of it"}),
            json!({"ruleName": "long_name", "version": 0, "ruleDisabled": true, "source": "file"}),
            json!({"ruleName": "b", "version": 1, "ruleDisabled": false, "source": "store", "problem": "no table"}),
        ];
        assert_eq!(
            list(&rules),
            "a             v3  enabled     all of it\n\
             long_name   file  disabled\n\
             b             v1  cannot run\n"
        );
        assert_eq!(list(&[]), "there are no rules\n");
    }
}
