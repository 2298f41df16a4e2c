//! `homeport rules` on a data directory, through its server, and without either.

mod support;

use std::path::Path;

use homeport_engine::{Engine, Options};
use homeport_item::Item;
use homeport_store::{Put, Store as _};
use serde_json::{Value, json};
use support::{Server, complaint, output, path, run, text};

/// 2027-01-15T08:00:00Z
const NOW_MS: i64 = 1_800_000_000_000;

fn rules(data_dir: &Path, arguments: &[&str]) -> String {
    let place = ["--data-dir", path(data_dir)];
    output(&[&["rules"], arguments, &place[..]].concat())
}

fn with_tables() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    output(&["tables", "create", "--data-dir", path(directory.path())]);
    directory
}

/// A rule that selects voltages only.
fn write_rule(directory: &Path) -> String {
    let rule = json!({
        "sql": "SELECT topic(2) AS thing_name, timestamp() AS timestamp, 'telemetry' AS message_type, volts FROM 'van/+/telemetry'",
        "description": "voltages only",
        "awsIotSqlVersion": "2016-03-23",
        "actions": [{"dynamoDBv2": {"putItem": {"tableName": "van-telemetry"}}}],
    });
    let file = directory.join("rule.json");
    std::fs::write(&file, rule.to_string()).expect("written");
    path(&file).to_owned()
}

#[test]
fn statement_is_tried_without_a_server() {
    let base = [
        "rules",
        "test",
        "--topic",
        "van/a/telemetry",
        "--timestamp",
        "7",
    ];
    let with = |sql: &str, payload: &str| {
        let options = ["--sql", sql, "--payload", payload];
        run(&[&base[..], &options[..]].concat())
    };
    let sql = "SELECT topic(2) AS thing, timestamp() AS at, volts, missing FROM 'van/+/telemetry' WHERE volts < 12";
    let tried = with(sql, r#"{"volts": 11.50}"#);
    assert!(tried.status.success(), "{}", text(&tried.stderr));
    let shown = text(&tried.stdout);
    let mut lines = shown.lines();
    assert_eq!(lines.next(), Some(r#"{"thing":"a","at":7,"volts":11.5}"#));
    let reason = lines.next().expect("a reason");
    assert!(
        reason.starts_with("Undefined: `missing` at line 1"),
        "{reason}"
    );
    let unmet = with(sql, r#"{"volts": 13}"#);
    assert!(!unmet.status.success());
    assert!(
        text(&unmet.stdout).contains("because `volts < 12`"),
        "{}",
        text(&unmet.stdout)
    );
    let wrong = with("SELECT volts FORM 'a'", "{}");
    assert!(!wrong.status.success());
    assert!(
        text(&wrong.stderr).contains("line 1"),
        "{}",
        text(&wrong.stderr)
    );
}

#[test]
fn rules_are_managed_in_a_data_directory() {
    let directory = with_tables();
    let data = directory.path();
    let file = write_rule(data);
    assert_eq!(rules(data, &["list"]).lines().count(), 3);
    let made: Value =
        serde_json::from_str(&rules(data, &["create", "volts", &file])).expect("JSON");
    assert_eq!(
        (&made["ruleName"], &made["version"]),
        (&json!("volts"), &json!(1))
    );
    assert_eq!(
        rules(data, &["disable", "volts"]),
        "rule volts is disabled\n"
    );
    let listed = rules(data, &["list"]);
    let line = listed.lines().last().expect("a line");
    assert!(
        line.contains("volts") && line.contains("v2") && line.contains("disabled"),
        "{line}"
    );
    assert!(line.ends_with("voltages only"), "{line}");
    rules(data, &["enable", "volts"]);
    let shown: Value = serde_json::from_str(&rules(data, &["show", "volts"])).expect("JSON");
    assert_eq!(shown["ruleDisabled"], false);
    assert_eq!(rules(data, &["delete", "volts"]), "deleted rule volts\n");
    let missing = complaint(&["rules", "show", "volts", "--data-dir", path(data)]);
    assert!(missing.contains("rule volts does not exist"), "{missing}");
}

#[test]
fn directory_in_use_is_reached_through_its_server() {
    let directory = with_tables();
    let file = write_rule(directory.path());
    let server = Server::start(directory.path(), &[]);
    rules(directory.path(), &["create", "volts", &file]);
    rules(directory.path(), &["disable", "volts"]);
    let listed = rules(directory.path(), &["list"]);
    assert!(
        listed.contains("volts") && listed.contains("disabled"),
        "{listed}"
    );
    rules(directory.path(), &["delete", "volts"]);
    assert_eq!(rules(directory.path(), &["list"]).lines().count(), 3);
    server.stop("-TERM");
}

#[test]
fn file_rules_override_stored_rules() {
    let directory = with_tables();
    let data = directory.path();
    let file = data.join("rules.toml");
    let text = "[[rules]]\nruleName = \"status\"\n[rules.topicRulePayload]\nsql = \"SELECT * FROM 'a'\"\nactions = []\n";
    std::fs::write(&file, text).expect("written");
    let listed = rules(data, &["list", "--rules-file", path(&file)]);
    let line = listed
        .lines()
        .find(|line| line.starts_with("status"))
        .expect("a line");
    assert!(line.contains("file"), "{line}");
    std::fs::write(&file, text.replace("SELECT", "SELEKT")).expect("written");
    let wrong = complaint(&[
        "rules",
        "list",
        "--data-dir",
        path(data),
        "--rules-file",
        path(&file),
    ]);
    assert!(
        wrong.contains("rules.toml") && wrong.contains("line 1"),
        "{wrong}"
    );
}

#[tokio::test]
async fn replay_prints_differences_without_writing() {
    let directory = with_tables();
    let data = directory.path();
    let item = Item::new()
        .with("thing_name", "a")
        .with("timestamp", NOW_MS)
        .with("message_type", "telemetry")
        .with("volts", 12)
        .with("hvac_mode", "heat");
    let engine = Engine::open(data, Options::default()).expect("opens");
    let put = engine.put(Put::new("van-telemetry", item)).await;
    put.expect("put");
    drop(engine);
    let file = write_rule(data);
    let replay = ["replay", "volts", "--thing", "a", "--file", &file];
    let shown = rules(data, &replay);
    assert_eq!(
        shown,
        "2027-01-15T08:00:00.000Z van/a/telemetry\n\
         \x20 van-telemetry {\"thing_name\":\"a\",\"timestamp\":1800000000000}\n\
         \x20   - hvac_mode: \"heat\"\n\
         1 messages: 0 writes equal to stored items, 1 different, 0 failures; nothing was written\n"
    );
    assert_eq!(rules(data, &replay), shown);
    // The server gives the same result.
    let server = support::Server::start(data, &[]);
    assert_eq!(rules(data, &replay), shown);
    drop(server);
}
