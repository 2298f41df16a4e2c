//! Snapshots of the printed tables: a change of a schema must show here. To accept a change, write the command's output to
//! the expected file.

mod support;

use homeport_engine::{Engine, Options};
use support::{complaint, output, path};

#[track_caller]
fn check(command: &str, expected: &str) {
    assert_eq!(output(&["tables", command]), expected);
}

#[test]
fn listing_equals_the_snapshot() {
    check("describe", include_str!("expected/tables.txt"));
}

#[test]
fn terraform_equals_the_snapshot() {
    check("terraform", include_str!("expected/tables.tf"));
}

#[test]
fn cloudformation_equals_the_snapshot() {
    check("cloudformation", include_str!("expected/tables.json"));
}

#[test]
fn settings_become_defaults_of_the_variables() {
    let tags = ["--store-tags", "team=iot"];
    let text = output(
        &[
            &["tables", "terraform", "--store-deletion-protection"],
            &tags[..],
        ]
        .concat(),
    );
    assert!(
        text.contains("default     = { \"team\" = \"iot\" }"),
        "{text}"
    );
    assert!(text.contains(
        "variable \"deletion_protection\" {\n  type        = bool\n  default     = true"
    ));
}

#[test]
fn key_without_an_arn_is_rejected() {
    for form in ["terraform", "cloudformation"] {
        let message = complaint(&["tables", form, "--store-kms-key-id", "1234abcd-12ab"]);
        assert!(message.contains("must be an ARN"), "{message}");
    }
}

#[test]
fn alias_of_a_key_is_rejected_everywhere() {
    for alias in [
        "alias/mine",
        "arn:aws:kms:eu-central-1:111122223333:alias/mine",
    ] {
        for command in [
            &["tables", "terraform"][..],
            &["tables", "cloudformation"],
            &["tables", "create", "--store", "dynamodb"],
            &["serve", "--store", "dynamodb"],
        ] {
            let message = complaint(&[command, &["--store-kms-key-id", alias]].concat());
            assert!(message.contains("not an alias"), "{message}");
        }
    }
}

#[test]
fn tables_create_is_idempotent() {
    let directory = tempfile::tempdir().expect("a directory");
    let create = ["tables", "create", "--data-dir", path(directory.path())];
    let made = output(&create);
    assert_eq!(output(&create), made);
    let engine = Engine::open(directory.path(), Options::default()).expect("opens");
    let listing = include_str!("expected/tables.txt");
    for name in engine.table_names() {
        assert!(listing.contains(&format!("\n  {name}\n")), "{name}");
    }
    assert!(
        made.starts_with(&format!("{} tables", engine.table_names().len())),
        "{made}"
    );
}
