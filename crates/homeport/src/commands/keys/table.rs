//! Formats API keys as a table.

use homeport_server::ApiKeyBody;

use crate::commands::columns::{self, cell};

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
    columns::render(HEAD, keys.iter().map(row))
}

fn row(key: &ApiKeyBody) -> [String; HEAD.len()] {
    let scopes: Vec<_> = key.scopes.iter().map(String::as_str).collect();
    [
        cell(Some(&key.key_id)),
        if key.is_active { "active" } else { "revoked" }.to_owned(),
        cell(Some(&key.system)),
        cell(Some(&key.created_at)),
        cell(key.last_used_at.as_deref()),
        cell(Some(&scopes.join(","))),
        cell(key.description.as_deref()),
    ]
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
