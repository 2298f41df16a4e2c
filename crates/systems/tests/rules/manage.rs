//! Rules made, changed, switched and deleted while messages come in.

use homeport_systems::messages::Intake as _;
use homeport_systems::rules::{RuleError, Source, VERSIONS_KEPT};
use serde_json::{Value, json};

use crate::world::{OTHER, TELEMETRY, World, message, new, put_item, rule_name, world, world_with};

const SQL: &str = "SELECT topic(2) AS id, * FROM 'x/+'";

fn patch(changes: Value) -> serde_json::Map<String, Value> {
    match changes {
        Value::Object(changes) => changes,
        other => panic!("{other} is no object"),
    }
}

async fn stored_after(world: &World, thing: &str) -> bool {
    world.send(&format!("x/{thing}"), "{}").await;
    let items = world.items(OTHER).await;
    items.iter().any(|item| item["id"]["S"] == thing)
}

#[tokio::test]
async fn rule_runs_from_creation_to_deletion() {
    let world = world().await;
    let name = rule_name("r");
    assert!(!stored_after(&world, "before").await);
    let made = world.create("r", put_item(SQL, OTHER)).await;
    assert_eq!((made.rule.version, made.rule.source), (1, Source::Store));
    assert!(stored_after(&world, "made").await);
    let off = world.engine.switch(&name, false).await.expect("off");
    assert_eq!(
        (off.rule.version, off.rule.document.rule_disabled),
        (2, true)
    );
    assert!(!stored_after(&world, "off").await);
    let again = world.engine.switch(&name, false).await.expect("off");
    assert_eq!(again.rule.version, 2, "what changes nothing is no version");
    world.engine.switch(&name, true).await.expect("on");
    assert!(stored_after(&world, "on").await);
    world.engine.delete(&name, None).await.expect("deleted");
    assert!(!stored_after(&world, "deleted").await);
    assert_eq!(
        world.engine.rule(&name),
        Err(RuleError::Missing(name.clone()))
    );
    assert_eq!(
        world.engine.delete(&name, None).await,
        Err(RuleError::Missing(name))
    );
}

#[tokio::test]
async fn every_change_is_a_readable_version() {
    let world = world().await;
    let name = rule_name("r");
    world.create("r", put_item(SQL, OTHER)).await;
    let described = patch(json!({"description": "second"}));
    world
        .engine
        .patch(&name, described, None)
        .await
        .expect("patched");
    world.engine.delete(&name, None).await.expect("deleted");
    let again = world.create("r", put_item(SQL, OTHER)).await;
    assert_eq!(again.rule.version, 4);
    let versions = world.engine.versions(&name).await.expect("versions");
    let versions: Vec<_> = versions
        .iter()
        .map(|one| {
            let description = one.rule.document.description.as_deref();
            (one.rule.version, description, one.is_deletion)
        })
        .collect();
    assert_eq!(
        versions,
        [
            (4, None, false),
            (3, Some("second"), true),
            (2, Some("second"), false),
            (1, None, false)
        ]
    );
    let second = world.engine.version(&name, 2).await.expect("a version");
    assert_eq!(second.rule.document.description.as_deref(), Some("second"));
    let missing = world.engine.version(&name, 9).await;
    assert_eq!(missing, Err(RuleError::VersionMissing(name)));
}

#[tokio::test]
async fn old_versions_are_bounded() {
    let world = world().await;
    let name = rule_name("r");
    world.create("r", put_item(SQL, OTHER)).await;
    for n in 0..VERSIONS_KEPT + 5 {
        let change = patch(json!({"description": n.to_string()}));
        world
            .engine
            .patch(&name, change, None)
            .await
            .expect("patched");
    }
    let versions = world.engine.versions(&name).await.expect("versions");
    assert_eq!(i64::try_from(versions.len()), Ok(VERSIONS_KEPT));
    assert_eq!(versions[0].rule.version, VERSIONS_KEPT + 6);
    let forgotten = world.engine.version(&name, 6).await;
    assert_eq!(forgotten, Err(RuleError::VersionMissing(name.clone())));
    world.engine.version(&name, 7).await.expect("the oldest");
}

#[tokio::test]
async fn change_of_another_version_is_rejected() {
    let world = world().await;
    let name = rule_name("r");
    world.create("r", put_item(SQL, OTHER)).await;
    let document = || serde_json::from_value(put_item(SQL, OTHER)).expect("a rule");
    let (view, is_new) = world
        .engine
        .put(&name, document(), Some(1))
        .await
        .expect("put");
    assert_eq!((view.rule.version, is_new), (2, false));
    let changed = RuleError::Changed {
        name: name.clone(),
        actual: 2,
    };
    let put = world.engine.put(&name, document(), Some(1)).await;
    assert_eq!(put.expect_err("changed"), changed);
    let patched = world.engine.patch(&name, patch(json!({})), Some(1)).await;
    assert_eq!(patched.expect_err("changed"), changed);
    assert_eq!(world.engine.delete(&name, Some(1)).await, Err(changed));
    let created = world.engine.create(new("r", put_item(SQL, OTHER))).await;
    assert_eq!(created.expect_err("there"), RuleError::Exists(name));
    let unknown = world
        .engine
        .put(&rule_name("unknown"), document(), Some(1))
        .await;
    assert!(matches!(unknown, Err(RuleError::Missing(_))));
}

#[tokio::test]
async fn concurrent_changes_do_not_overwrite_each_other() {
    let world = world().await;
    let other = world.other_engine().await;
    world.create("r", put_item(SQL, OTHER)).await;
    let name = rule_name("r");
    let (one, two) = tokio::join!(
        world
            .engine
            .patch(&name, patch(json!({"description": "one"})), Some(1)),
        other.patch(&name, patch(json!({"description": "two"})), Some(1)),
    );
    assert_eq!(usize::from(one.is_ok()) + usize::from(two.is_ok()), 1);
    assert_eq!(
        world.engine.versions(&name).await.expect("versions").len(),
        2
    );
}

#[tokio::test]
async fn other_process_loads_a_change() {
    let world = world().await;
    let other = world.other_engine().await;
    assert_eq!(other.refresh().await, Ok(false));
    world.create("r", put_item(SQL, OTHER)).await;
    other
        .take(&message("x/early", "{}"))
        .await
        .expect("taken in");
    assert_eq!(other.refresh().await, Ok(true));
    other
        .take(&message("x/late", "{}"))
        .await
        .expect("taken in");
    let items = world.items(OTHER).await;
    assert_eq!(items, [json!({"id": {"S": "late"}})]);
    assert_eq!(other.refresh().await, Ok(false));
}

#[tokio::test]
async fn invalid_rule_is_rejected_with_its_place() {
    let world = world().await;
    let action = |action: Value| json!({"sql": SQL, "actions": [action]});
    let republish = |topic: &str| action(json!({"republish": {"topic": topic}}));
    for (document, place) in [
        (
            json!({"sql": "SELEKT * FROM 'a'", "actions": []}),
            "line 1, column 1",
        ),
        (
            json!({"sql": "SELECT aws_lambda('f', *) FROM 'a'", "actions": []}),
            "aws_lambda",
        ),
        (
            json!({"sql": "SELECT nosuch(1) FROM 'a'", "actions": []}),
            "nosuch",
        ),
        (
            json!({"sql": SQL, "actions": [], "awsIotSqlVersion": "2015-10-08"}),
            "awsIotSqlVersion",
        ),
        (
            json!({"sql": SQL, "actions": [], "awsIotSqlVersion": "beta"}),
            "awsIotSqlVersion",
        ),
        (action(json!({})), "actions[0]"),
        (
            action(json!({"republish": {"topic": "a"}, "http": {"url": "https://x"}})),
            "actions[0]",
        ),
        (republish("${topic(}"), "actions[0].republish.topic"),
        (republish("a/#"), "actions[0].republish.topic"),
        (republish(""), "actions[0].republish.topic"),
        (
            action(json!({"republish": {"topic": "a", "qos": 2}})),
            "actions[0].republish.qos",
        ),
        (
            action(json!({"http": {"url": "ftp://x"}})),
            "actions[0].http.url",
        ),
        (
            action(json!({"http": {"url": "https://${host}/"}})),
            "actions[0].http.url",
        ),
        (
            action(
                json!({"http": {"url": "https://x/", "headers": [{"key": "Host", "value": "y"}]}}),
            ),
            "actions[0].http.headers",
        ),
        (
            json!({"sql": SQL, "actions": vec![json!({"republish": {"topic": "a"}}); 11]}),
            "actions",
        ),
        (
            json!({"sql": SQL, "actions": [], "errorAction": {"republish": {"topic": "${"}}}),
            "errorAction.republish.topic",
        ),
        (
            json!({"sql": format!("SELECT * FROM '{}'", "a/".repeat(64)), "actions": []}),
            "sql",
        ),
    ] {
        let error = world
            .engine
            .create(new("r", document))
            .await
            .expect_err(place);
        assert!(error.to_string().contains(place), "{place}: {error}");
    }
}

#[tokio::test]
async fn aws_only_members_are_stored_and_noted() {
    let world = world().await;
    let mut document = put_item(SQL, OTHER);
    document["actions"][0]["dynamoDBv2"]["roleArn"] = json!("arn:aws:iam::1:role/r");
    let view = world.create("r", document).await;
    assert!(
        view.notes[0].contains("actions[0].dynamoDBv2.roleArn"),
        "{view:?}"
    );
    assert!(view.notes[1].contains("awsIotSqlVersion"), "{view:?}");
    assert!(
        view.rule
            .document
            .to_json()
            .contains("arn:aws:iam::1:role/r")
    );
}

#[tokio::test]
async fn shipped_rules_are_created_only_once() {
    let world = world().await;
    let page = world.engine.rules(10, None).expect("rules");
    let names: Vec<_> = page
        .items
        .iter()
        .map(|view| view.rule.name.as_str())
        .collect();
    assert_eq!(names, ["alerts", "status", "telemetry"]);
    world
        .engine
        .delete(&rule_name("status"), None)
        .await
        .expect("deleted");
    world
        .engine
        .switch(&rule_name("alerts"), false)
        .await
        .expect("off");
    let world = world.restart(Vec::new()).await;
    let page = world.engine.rules(10, None).expect("rules");
    let rules: Vec<_> = page
        .items
        .iter()
        .map(|view| (view.rule.name.as_str(), view.rule.document.rule_disabled))
        .collect();
    assert_eq!(rules, [("alerts", true), ("telemetry", false)]);
}

#[tokio::test]
async fn rule_of_the_file_wins() {
    let world = world().await;
    let sql = "SELECT topic(2) AS id, 'file' AS origin FROM 'van/+/telemetry'";
    let file = vec![new("telemetry", put_item(sql, OTHER))];
    let world = world.restart(file).await;
    world.send("van/a/telemetry", "{}").await;
    assert_eq!(world.items(OTHER).await.len(), 1);
    assert_eq!(world.items(TELEMETRY).await, Vec::<Value>::new());
    let name = rule_name("telemetry");
    let view = world.engine.rule(&name).expect("a rule");
    assert_eq!((view.rule.source, view.rule.version), (Source::File, 0));
    for refused in [
        world.engine.switch(&name, false).await.map(|_| ()),
        world.engine.delete(&name, None).await,
        world
            .engine
            .create(new("telemetry", put_item(sql, OTHER)))
            .await
            .map(|_| ()),
    ] {
        assert_eq!(refused, Err(RuleError::InFile(name.clone())));
    }
    let world = world.restart(Vec::new()).await;
    let view = world.engine.rule(&name).expect("a rule");
    assert_eq!(
        view.rule.source,
        Source::Store,
        "without the file, the store's is there again"
    );
}

#[tokio::test]
async fn rules_are_listed_in_pages() {
    let world = world_with(vec![new("zebra", put_item(SQL, OTHER))]).await;
    let (mut names, mut cursor) = (Vec::new(), None);
    loop {
        let page = world.engine.rules(3, cursor).expect("rules");
        names.extend(page.items.iter().map(|view| view.rule.name.to_string()));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(names, ["alerts", "status", "telemetry", "zebra"]);
}
