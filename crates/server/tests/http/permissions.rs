//! Every route with every kind of credential, compared with the table in docs/permissions.md, and what limited roles see.

use std::collections::HashMap;

use homeport_systems::api_keys::KeyPermission;
use serde_json::{Value, json};

use crate::people::{as_person, create, create_with, sign_in, token};
use crate::policy::{Operation, document, operations};
use crate::push::token_of;
use crate::support::{ADMIN, Answer, Server};

const DOCUMENT: &str = include_str!("../../../../docs/permissions.md");
/// The user of the paths that name one.
const USER: &str = "anna";

/// A row of the table.
struct Row {
    nobody: bool,
    /// Viewer, operator, administrator.
    roles: [bool; 3],
    token: bool,
    api_key: bool,
    user: bool,
    limited: String,
}

fn table() -> HashMap<String, Row> {
    let mut rows = HashMap::new();
    let lines = DOCUMENT
        .lines()
        .skip_while(|line| !line.starts_with("| Permission"));
    for line in lines.skip(2).take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let is_permitted = |at: usize| cells[at] != "–";
        for route in cells[10].split("<br>") {
            let row = Row {
                nobody: is_permitted(2),
                roles: [3, 4, 5].map(is_permitted),
                token: is_permitted(6),
                api_key: is_permitted(7),
                user: is_permitted(8),
                limited: cells[9].to_owned(),
            };
            let before = rows.insert(route.trim_matches('`').to_owned(), row);
            assert!(before.is_none(), "{route} is in two rows");
        }
    }
    rows
}

/// Whether a request gets past authentication and the check of permissions. Wrong credentials are limited after a while.
fn is_permitted(answer: &Answer) -> bool {
    !matches!(answer.status, 401 | 403 | 429)
}

/// The path; a live feed would not end, so its request is invalid.
fn path(operation: &Operation) -> String {
    match operation.route.as_str() {
        "/v1/live" => "/v1/live?last_event_id=invalid".to_owned(),
        _ => operation.path.clone(),
    }
}

#[tokio::test]
async fn every_route_permits_what_the_table_says() {
    let server = Server::start().await;
    let table = table();
    let operations = operations(&document(&server).await);
    let roles = ["viewer", "operator", "administrator"];
    let mut sessions = Vec::new();
    let mut tokens = Vec::new();
    for role in roles {
        create(&server, role, role).await;
        let session = sign_in(&server, role).await;
        tokens.push(format!("Bearer {}", token(&server, &session, role).await));
        sessions.push(session);
    }
    let mut keys = HashMap::new();
    for system in ["sensors", "chargers", "telemetry", "records", "push"] {
        keys.insert(system, server.key_of(system, []).await);
    }
    keys.insert("telemetry", server.command_key().await);
    let broadcasts = KeyPermission::SendBroadcasts;
    keys.insert("push", server.permitted_key("push", broadcasts).await);
    let admin = format!("Bearer {ADMIN}");
    let user = format!("Bearer {}", token_of(USER));
    let mut tried = 0;
    for operation in &operations {
        let route = format!("{} {}", operation.method, operation.route);
        let row = table
            .get(&route)
            .unwrap_or_else(|| panic!("docs/permissions.md lacks {route}"));
        let path = path(operation);
        let send = async |headers: &[(&str, &str)]| {
            let body = operation.takes_json.then(|| "{}".to_owned());
            server.send(&operation.method, &path, headers, body).await
        };
        let check = |credential: &str, answer: &Answer, expected: bool| {
            assert_eq!(
                is_permitted(answer),
                expected,
                "{route} with {credential}: {answer:?}"
            );
        };
        check("nobody", &send(&[]).await, row.nobody);
        if row.nobody {
            continue;
        }
        tried += 1;
        for (at, role) in roles.iter().enumerate() {
            let session = [
                ("cookie", sessions[at].as_str()),
                ("sec-fetch-site", "same-origin"),
                ("x-homeport-console", "1"),
            ];
            check(
                &format!("the session of a {role}"),
                &send(&session).await,
                row.roles[at],
            );
            let token = [("authorization", tokens[at].as_str())];
            let expected = row.roles[at] && row.token;
            check(
                &format!("the token of a {role}"),
                &send(&token).await,
                expected,
            );
        }
        let expected = row.roles[2] && row.token;
        check(
            "the admin token",
            &send(&[("authorization", &admin)]).await,
            expected,
        );
        let key = keys
            .get(operation.system.as_str())
            .unwrap_or(&keys["sensors"]);
        check(
            "an API key",
            &send(&[("x-api-key", key)]).await,
            row.api_key,
        );
        // Without a name, people act for no user.
        check("a user", &send(&[("authorization", &user)]).await, row.user);
    }
    assert!(tried > 100, "{tried}");
    assert_eq!(
        table.len(),
        operations.len(),
        "the table has a route that does not exist"
    );
}

#[tokio::test]
async fn limited_role_reaches_only_what_it_covers() {
    let server = Server::start().await;
    let table = table();
    let roles = json!([{"role": "operator", "devices": ["push/nobody"]}]);
    create_with(&server, "limited", roles).await;
    let session = sign_in(&server, "limited").await;
    let mut tried = 0;
    for operation in operations(&document(&server).await) {
        let route = format!("{} {}", operation.method, operation.route);
        let row = &table[&route];
        let expected: &[u16] = match row.limited.as_str() {
            "whole server" => &[403],
            "filtered" => &[200, 400],
            // An alert is looked up before its device is known. A body is parsed before its device is known.
            "checked" if operation.route.starts_with("/v1/alerts/") => &[400, 404],
            "checked"
                if operation.takes_json || operation.route.starts_with("/v1/push/devices") =>
            {
                &[400, 403]
            }
            "checked" => &[403],
            _ => continue,
        };
        tried += 1;
        let answer = as_person(
            &server,
            &session,
            &operation.method,
            &path(&operation),
            Value::Null,
        )
        .await;
        assert!(expected.contains(&answer.status), "{route}: {answer:?}");
    }
    assert!(tried > 90, "{tried}");
}

#[tokio::test]
async fn lists_show_what_a_limited_role_covers() {
    let server = Server::start().await;
    for id in ["AA:BB:CC:DD:EE:01", "AA:BB:CC:DD:EE:02"] {
        let key = server.key().await;
        let body = json!({
            "hardware_id": id, "boot_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
            "firmware_version": "1", "capabilities": {},
        });
        let registered = server
            .as_device(&key, "POST", "/v1/sensors/register", body)
            .await;
        assert!(registered.status < 300, "{registered:?}");
    }
    let roles = json!([{"role": "viewer", "devices": ["sensors/AA:BB:CC:DD:EE:02"]}]);
    create_with(&server, "limited", roles).await;
    let session = sign_in(&server, "limited").await;
    let get = async |path: &str| as_person(&server, &session, "GET", path, Value::Null).await;
    let devices = get("/v1/devices").await;
    assert_eq!(devices.body["counts"]["total"], 1, "{devices:?}");
    assert_eq!(devices.body["devices"][0]["id"], "AA:BB:CC:DD:EE:02");
    let overview = get("/v1/overview").await;
    let systems = overview.body["systems"].as_array().expect("systems");
    let counted: u64 = systems
        .iter()
        .filter_map(|system| system["devices"].as_u64())
        .sum();
    assert_eq!(counted, 1, "{overview:?}");
    for (id, status) in [("AA:BB:CC:DD:EE:02", 200), ("AA:BB:CC:DD:EE:01", 403)] {
        for path in ["/v1/devices/sensors/", "/v1/sensors/devices/"] {
            assert_eq!(
                get(&format!("{path}{id}")).await.status,
                status,
                "{path}{id}"
            );
        }
    }
    let list = get("/v1/sensors/devices").await;
    assert_eq!(list.problem(), (403, "OUT_OF_LIMITS"));
}
