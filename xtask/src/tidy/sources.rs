//! Rules about one source file: its header, its length, and what must not be left in it.

/// A file past this length is two things.
const FILE_LINES_MAX: usize = 800;

/// Unfinished code and tests that never run. Written in two pieces, so that this file passes its own check.
const FORBIDDEN: [&str; 3] = [
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("#[", "ignore"),
];

/// What a program wrote: nobody reads it, and nobody splits it.
const GENERATED: [&str; 1] = ["console/src/api/schema.d.ts"];

/// The key-value store is named by one module of the engine alone: what goes to the disk another way would go there unsealed.
/// Tests may look behind it.
const KEY_VALUE_STORE: [&str; 2] = [concat!("fjall", "::"), concat!("lsm_tree", "::")];
const ENGINE: &str = "crates/engine/src/";
const VAULT: &str = "crates/engine/src/vault/";
const TESTS_BEGIN: &str = "#[cfg(test)]";

/// What is wrong with the file, each with its place. `path` is relative to the root and separated by `/`.
pub(super) fn check(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    if GENERATED.contains(&path) {
        return findings;
    }

    if let Some(header) = header(path)
        && !text.starts_with(header)
    {
        findings.push(format!(
            "{path}:1: begins without a `{header}` header that says what lives here"
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

/// How the header of a file begins, if it needs one: product code (`crates/<name>/src/…`, the console) and this program do;
/// tests and examples may go without.
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
    fn a_file_with_a_header_passes() {
        assert_findings("crates/item/src/number.rs", "//! Numbers.\n", &[]);
    }

    #[test]
    fn a_source_file_needs_a_header_on_its_first_line() {
        let finding = "begins without a `//!` header that says what lives here";
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
    fn the_console_has_headers_as_its_languages_write_them() {
        assert_findings("console/src/main.ts", "// Starts it.\n", &[]);
        assert_findings("console/src/App.svelte", "<!-- All of it. -->\n", &[]);
        for (path, header) in [
            ("console/src/main.ts", "//"),
            ("console/src/App.svelte", "<!--"),
        ] {
            let finding =
                format!("{path}:1: begins without a `{header}` header that says what lives here");
            assert_findings(path, "import x from \"y\";\n", &[&finding]);
        }
    }

    #[test]
    fn generated_files_may_be_as_they_are() {
        let long = "export interface paths {}\n".repeat(FILE_LINES_MAX + 1);
        assert_findings("console/src/api/schema.d.ts", &long, &[]);
    }

    #[test]
    fn tests_and_examples_may_go_without_a_header() {
        assert_findings("crates/item/tests/order.rs", "fn main() {}\n", &[]);
        assert_findings("crates/engine/examples/ingest.rs", "fn main() {}\n", &[]);
    }

    #[test]
    fn the_key_value_store_is_named_in_its_own_module_and_in_tests_alone() {
        let text = format!("//! Something.\nuse {}Keyspace;\n", KEY_VALUE_STORE[0]);
        let finding = "crates/engine/src/group.rs:2: `fjall::` belongs in crates/engine/src/vault/";
        assert_findings("crates/engine/src/group.rs", &text, &[finding]);
        assert_findings("crates/engine/src/vault/batch.rs", &text, &[]);
        assert_findings("bench/src/raw_side.rs", &text, &[]);
        let in_tests = format!("//! Something.\n{TESTS_BEGIN}\nmod tests {{\n{text}}}\n");
        assert_findings("crates/engine/src/journal.rs", &in_tests, &[]);
    }

    #[test]
    fn a_file_may_have_800_lines_and_no_more() {
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
