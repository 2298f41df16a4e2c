//! Formats API keys as a table.

use homeport_server::ApiKeyBody;

const HEAD: [&str; 7] = [
    "KEY ID",
    "STATE",
    "SYSTEM",
    "CREATED",
    "LAST USED",
    "SCOPES",
    "DESCRIPTION",
];

/// A header line and one line for each key, in columns.
pub(super) fn render(keys: &[ApiKeyBody]) -> String {
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(keys.iter().map(row));
    let mut widths = [0; HEAD.len()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            line.push_str(&format!("{cell:width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn row(key: &ApiKeyBody) -> [String; HEAD.len()] {
    let or_dash =
        |text: Option<&str>| printable(text.filter(|text| !text.is_empty()).unwrap_or("-"));
    let scopes: Vec<_> = key.scopes.iter().map(String::as_str).collect();
    [
        printable(&key.key_id),
        if key.is_active { "active" } else { "revoked" }.to_owned(),
        printable(&key.system),
        printable(&key.created_at),
        or_dash(key.last_used_at.as_deref()),
        or_dash(Some(&scopes.join(","))),
        or_dash(key.description.as_deref()),
    ]
}

/// Replaces control characters, so that a description cannot control the terminal.
fn printable(text: &str) -> String {
    text.chars()
        .map(|char| if char.is_control() { '\u{FFFD}' } else { char })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn columns_align_and_control_characters_are_replaced() {
        let key = |description: Option<&str>, scopes: &[&str], is_active| ApiKeyBody {
            key_id: "7c9e6679".to_owned(),
            created_at: "2027-01-15T08:00:00Z".to_owned(),
            last_used_at: None,
            is_active,
            description: description.map(str::to_owned),
            system: "sensors".to_owned(),
            scopes: scopes
                .iter()
                .map(|scope| (*scope).to_owned())
                .collect::<BTreeSet<_>>(),
            permissions: BTreeSet::new(),
        };
        let keys = [
            key(Some("red \u{1b}[31m"), &["a", "b"], true),
            key(None, &[], false),
        ];
        let expected = "\
KEY ID    STATE    SYSTEM   CREATED               LAST USED  SCOPES  DESCRIPTION
7c9e6679  active   sensors  2027-01-15T08:00:00Z  -          a,b     red \u{FFFD}[31m
7c9e6679  revoked  sensors  2027-01-15T08:00:00Z  -          -       -
";
        assert_eq!(render(&keys), expected);
    }
}
