//! Rules for one source file: header, length, and forbidden content.

/// Maximum number of lines of a file.
const FILE_LINES_MAX: usize = 800;

/// Unfinished code and disabled tests, written in two pieces so that this file passes its own check.
const FORBIDDEN: [&str; 3] = [
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("#[", "ignore"),
];

/// Generated files, which nobody reads.
const GENERATED: [&str; 1] = ["console/src/api/schema.d.ts"];

/// Only one module of the engine may name the key-value store, because it seals what is written to disk. Tests may use the
/// store directly.
const KEY_VALUE_STORE: [&str; 2] = [concat!("fjall", "::"), concat!("lsm_tree", "::")];
const ENGINE: &str = "crates/engine/src/";
const VAULT: &str = "crates/engine/src/storage/vault/";
const TESTS_BEGIN: &str = "#[cfg(test)]";

/// Findings in a file, each with its line. `path` is relative to the root and separated by `/`.
pub(super) fn check(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    if GENERATED.contains(&path) {
        return findings;
    }

    if let Some(header) = header(path)
        && !text.starts_with(header)
    {
        findings.push(format!(
            "{path}:1: missing `{header}` header that says what the file contains"
        ));
    }

    let line_count = text.lines().count();
    if line_count > FILE_LINES_MAX {
        findings.push(format!(
            "{path}: {line_count} lines, more than {FILE_LINES_MAX}: split it"
        ));
    }

    for (index, line) in text.lines().enumerate() {
        for forbidden in FORBIDDEN
            .iter()
            .filter(|forbidden| line.contains(**forbidden))
        {
            findings.push(format!(
                "{path}:{}: `{forbidden}` is not allowed",
                index + 1
            ));
        }
    }
    if path.starts_with(ENGINE) && !path.starts_with(VAULT) {
        let product = text.lines().take_while(|line| *line != TESTS_BEGIN);
        for (index, line) in product.enumerate() {
            let named = KEY_VALUE_STORE.iter().filter(|name| line.contains(**name));
            findings.extend(
                named.map(|name| format!("{path}:{}: `{name}` belongs in {VAULT}", index + 1)),
            );
        }
    }
    findings
}

/// The beginning of a file's header, if it needs one. Product code (`crates/<name>/src/…`, the console) and xtask do; tests
/// and examples do not.
fn header(path: &str) -> Option<&'static str> {
    let mut parts = path.split('/');
    match parts.next() {
        Some("crates") => (parts.nth(1) == Some("src")).then_some("//!"),
        Some("xtask") => Some("//!"),
        Some("console") if path.ends_with(".svelte") => Some("<!--"),
        Some("console") => Some("//"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_findings(path: &str, text: &str, expected: &[&str]) {
        assert_eq!(check(path, text), expected);
    }

    #[test]
    fn file_with_a_header_passes() {
        assert_findings("crates/item/src/number.rs", "//! Numbers.\n", &[]);
    }

    #[test]
    fn source_file_needs_a_header_on_its_first_line() {
        let finding = "missing `//!` header that says what the file contains";
        for (path, text) in [
            ("crates/item/src/lib.rs", ""),
            ("crates/item/src/key/order.rs", "use std::fmt;\n"),
            ("crates/item/src/lib.rs", "\n//! Too late.\n"),
            ("crates/item/src/lib.rs", "// An ordinary comment.\n"),
        ] {
            assert_findings(path, text, &[&format!("{path}:1: {finding}")]);
        }
    }

    #[test]
    fn console_headers_use_its_languages() {
        assert_findings("console/src/main.ts", "// Starts it.\n", &[]);
        assert_findings("console/src/App.svelte", "<!-- All of it. -->\n", &[]);
        for (path, header) in [
            ("console/src/main.ts", "//"),
            ("console/src/App.svelte", "<!--"),
        ] {
            let finding =
                format!("{path}:1: missing `{header}` header that says what the file contains");
            assert_findings(path, "import x from \"y\";\n", &[&finding]);
        }
    }

    #[test]
    fn generated_files_are_not_checked() {
        let long = "export interface paths {}\n".repeat(FILE_LINES_MAX + 1);
        assert_findings("console/src/api/schema.d.ts", &long, &[]);
    }

    #[test]
    fn tests_and_examples_need_no_header() {
        assert_findings("crates/item/tests/order.rs", "fn main() {}\n", &[]);
        assert_findings("crates/engine/examples/ingest.rs", "fn main() {}\n", &[]);
    }

    #[test]
    fn key_value_store_is_named_in_its_module_only() {
        let text = format!("//! Something.\nuse {}Keyspace;\n", KEY_VALUE_STORE[0]);
        let finding = "crates/engine/src/commit/group.rs:2: `fjall::` belongs in crates/engine/src/storage/vault/";
        assert_findings("crates/engine/src/commit/group.rs", &text, &[finding]);
        assert_findings("crates/engine/src/storage/vault/batch.rs", &text, &[]);
        assert_findings("bench/src/raw_side.rs", &text, &[]);
        let in_tests = format!("//! Something.\n{TESTS_BEGIN}\nmod tests {{\n{text}}}\n");
        assert_findings("crates/engine/src/storage/journal.rs", &in_tests, &[]);
    }

    #[test]
    fn file_may_have_800_lines() {
        let path = "crates/item/src/lib.rs";
        let longest = "//!\n".repeat(FILE_LINES_MAX);
        assert_findings(path, &longest, &[]);
        assert_findings(
            path,
            &format!("{longest}//!\n"),
            &["crates/item/src/lib.rs: 801 lines, more than 800: split it"],
        );
    }

    #[test]
    fn unfinished_code_is_found_with_its_line() {
        for forbidden in FORBIDDEN {
            assert_findings(
                "crates/item/tests/order.rs",
                &format!("fn a() {{\n    {forbidden}\n}}\n"),
                &[&format!(
                    "crates/item/tests/order.rs:2: `{forbidden}` is not allowed"
                )],
            );
        }
    }
}
