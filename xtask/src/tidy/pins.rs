//! Requires exact versions of crates whose files the engine reads itself: another version may use another format.

/// The key-value store, its trees, and the format of their lists.
const PINNED: [&str; 3] = ["fjall", "lsm-tree", "sfa"];

/// Findings in the workspace's manifest.
pub(super) fn check(manifest: &str) -> Vec<String> {
    let unpinned = PINNED.iter().filter(|name| {
        let mut lines = manifest.lines();
        let requirement = lines.find_map(|line| line.strip_prefix(**name)?.strip_prefix(" = "));
        !requirement.is_some_and(|requirement| requirement.contains("\"="))
    });
    unpinned
        .map(|name| {
            format!("Cargo.toml: `{name}` must be pinned exactly (\"=\"), because the engine reads its files")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_range_is_found() {
        let pinned =
            "fjall = \"=3.1.13\"\nlsm-tree = { version = \"=3.1.10\" }\nsfa = \"=1.0.0\"\n";
        assert_eq!(check(pinned), Vec::<String>::new());
        let open = pinned.replace("fjall = \"=", "fjall = \"");
        assert_eq!(check(&open).len(), 1);
        assert!(check(&open)[0].contains("`fjall`"));
        assert_eq!(check("").len(), 3);
    }
}
