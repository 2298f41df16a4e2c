//! The binary's settings: from flags, the environment and a file.

mod support;

use support::{complaint, homeport, output, path, text};

#[test]
fn layers_override_each_other_and_are_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = "\
[store]
cache_mib = 1
durability = \"relaxed\"

[http]
listen = \"127.0.0.1:1\"

[sensors]
reading_retention_days = 3

[admin]
token = \"a token that nobody may see\"
";
    std::fs::write(directory.path().join("homeport.toml"), file).expect("written");
    let printed = homeport(&["config", "print", "--cache-mib", "5"])
        .current_dir(directory.path())
        .env("HOMEPORT_CACHE_MIB", "4")
        .env("HOMEPORT_HTTP_LISTEN", "127.0.0.1:2")
        .env("API_KEY_PEPPER", "a pepper that nobody may see")
        .output()
        .expect("the binary runs");
    assert!(printed.status.success(), "{}", text(&printed.stderr));
    let printed = text(&printed.stdout);
    for line in [
        "cache_mib = 5 # flag --cache-mib",
        "listen = \"127.0.0.1:2\" # environment, HOMEPORT_HTTP_LISTEN",
        "durability = \"relaxed\" # homeport.toml, line 3",
        "reading_retention_days = 3 # homeport.toml, line 9",
        "rate_per_second = 1000 # default",
        "# token is set and hidden (homeport.toml, line 12)",
        "# pepper is set and hidden (environment, API_KEY_PEPPER)",
    ] {
        assert!(
            printed.lines().any(|printed| printed == line),
            "{line}\n{printed}"
        );
    }
    assert!(!printed.contains("nobody may see"), "{printed}");

    // The output is a file with the same settings.
    let again = directory.path().join("again.toml");
    std::fs::write(&again, &printed).expect("written");
    let second = output(&["config", "print", "--config", path(&again)]);
    let values = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| line.split(" # ").next().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(values(&second), values(&printed));
}

#[test]
fn named_file_must_exist_and_be_valid() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("my.toml");
    let arguments = ["check", "--config", path(&file)];
    assert!(complaint(&arguments).contains("cannot read the configuration file"));
    std::fs::write(&file, "\n[http]\nlitsen = \"127.0.0.1:1\"\n").expect("written");
    let message = complaint(&arguments);
    assert!(
        message.contains("my.toml, line 3: unknown key http.litsen"),
        "{message}"
    );
    let by_variable = homeport(&["config", "print"])
        .env("HOMEPORT_CONFIG", &file)
        .output()
        .expect("the binary runs");
    assert!(text(&by_variable.stderr).contains("unknown key http.litsen"));
}

#[test]
fn invalid_value_is_reported_with_its_origin() {
    let message = complaint(&["check", "--data-dir", ""]);
    assert!(
        message.contains("flag --data-dir: the value cannot be empty"),
        "{message}"
    );
    let message = complaint(&["serve", "--store", "tape"]);
    assert!(
        message.contains("[possible values: embedded, dynamodb]"),
        "{message}"
    );
    let message = complaint(&["serve", "--dynamodb-access-key-id", "id"]);
    assert!(message.contains("must be given together"), "{message}");
    let message = complaint(&["check", "--log", "info,=,"]);
    assert!(message.contains("log filter"), "{message}");
}

#[test]
fn template_changes_no_setting() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("homeport.toml");
    std::fs::write(&file, output(&["config", "template"])).expect("written");
    let with = output(&["config", "print", "--config", path(&file)]);
    assert_eq!(with, output(&["config", "print"]));
}

#[cfg(unix)]
#[test]
fn json_log_contains_no_key() {
    let directory = tempfile::tempdir().expect("a directory");
    let more = ["--log-format", "json", "--log", "debug"];
    let server = support::Server::start(directory.path(), &more);
    let key = "not-a-key-but-secret-all-the-same";
    assert_eq!(
        server.status("/v1/sensors/devices", ("x-api-key", key)),
        401
    );
    let (_, log) = server.stop("-TERM");
    let lines: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).expect("a JSON object"))
        .collect();
    let finished: Vec<_> = lines
        .iter()
        .filter(|line| line["message"] == "finished")
        .collect();
    assert_eq!(finished.len(), 1, "{log}");
    let line = finished[0];
    assert_eq!(line["level"], "INFO");
    assert_eq!(line["method"], "GET");
    assert_eq!(line["route"], "/v1/sensors/devices");
    assert_eq!(line["status"], 401);
    assert!(
        line["duration_ms"].is_f64() && line["request_id"].is_string(),
        "{line}"
    );
    assert!(!log.contains(key), "{log}");
}
