//! What actions do besides putting items.

use homeport_systems::messages::Delivery;
use homeport_systems::push::{NewDevice, Platform};
use serde_json::{Value, json};

use crate::world::{OTHER, World, world};

fn action(sql: &str, action: Value) -> Value {
    json!({"sql": sql, "actions": [action]})
}

#[tokio::test]
async fn republish_fills_templates_and_sends_the_result() {
    let world = world().await;
    let republish = json!({"republish": {
        "topic": "low/${topic(2)}/${volts}", "qos": 1,
        "headers": {"contentType": "application/json", "messageExpiry": "60",
            "userProperties": [{"key": "thing", "value": "${topic(2)}"}]},
    }});
    let sql = "SELECT volts, topic(2) AS thing FROM 'van/+/battery' WHERE volts < 12";
    world.create("low", action(sql, republish)).await;
    world.send("van/a/battery", r#"{"volts": 12.5}"#).await;
    assert!(world.broker.take().is_empty());
    world
        .send("van/a/battery", r#"{"volts": 11.90, "other": 1}"#)
        .await;
    let published = world.broker.take();
    assert_eq!(published.len(), 1);
    let message = &published[0];
    assert_eq!(message.topic, "low/a/11.9");
    assert_eq!(message.payload, r#"{"volts":11.9,"thing":"a"}"#);
    assert_eq!((message.delivery, message.hops), (Delivery::AtLeastOnce, 1));
    assert_eq!(
        message.properties.content_type.as_deref(),
        Some("application/json")
    );
    assert_eq!(message.properties.expires_after_secs, Some(60));
    assert_eq!(
        message.properties.user,
        [("thing".to_owned(), "a".to_owned())]
    );
    let counts = world.counts("low");
    assert_eq!(
        (counts.matched, counts.not_matched, counts.actions_done),
        (1, 1, 1)
    );
}

#[tokio::test]
async fn invalid_topic_is_a_failure() {
    let world = world().await;
    let republish = json!({"republish": {"topic": "${to}"}});
    world
        .create("to", action("SELECT * FROM 'x'", republish))
        .await;
    for payload in [
        r#"{"to": "a/#"}"#,
        r#"{"to": "$sys/a"}"#,
        r#"{"to": ""}"#,
        "{}",
    ] {
        world.send("x", payload).await;
    }
    assert!(world.broker.take().is_empty());
    assert_eq!(world.counts("to").actions_failed, 4);
}

async fn store_payload(world: &World, operation: Option<&str>) {
    let mut dynamodb = json!({
        "tableName": OTHER, "hashKeyField": "id", "hashKeyValue": "${topic(2)}",
        "payloadField": "data", "roleArn": "arn:aws:iam::123456789012:role/r",
    });
    if let Some(operation) = operation {
        dynamodb["operation"] = json!(operation);
    }
    let rule = action("SELECT n FROM 'x/+'", json!({"dynamoDB": dynamodb}));
    world.create("payload", rule).await;
}

#[tokio::test]
async fn older_dynamodb_action_puts_one_attribute() {
    let world = world().await;
    store_payload(&world, None).await;
    world.send("x/a", r#"{"n": 1.50, "m": 2}"#).await;
    let expected = json!({"id": {"S": "a"}, "data": {"M": {"n": {"N": "1.5"}}}});
    assert_eq!(world.items(OTHER).await, [expected]);
}

#[tokio::test]
async fn message_can_choose_the_operation() {
    let world = world().await;
    store_payload(&world, Some("${op}")).await;
    world.send("x/a", r#"{"op": "INSERT", "n": 1}"#).await;
    world.send("x/a", r#"{"op": "UPDATE", "n": 2}"#).await;
    let expected = json!({"id": {"S": "a"}, "data": {"M": {"n": {"N": "2"}}}});
    assert_eq!(world.items(OTHER).await, [expected]);
    world.send("x/a", r#"{"op": "DROP", "n": 3}"#).await;
    assert_eq!(world.reasons("payload").len(), 1);
    world.send("x/a", r#"{"op": "DELETE"}"#).await;
    assert_eq!(world.items(OTHER).await, Vec::<Value>::new());
}

#[tokio::test]
async fn push_notification_is_queued_before_the_acknowledgement() {
    let world = world().await;
    let user = "user-1".parse().expect("a user");
    let device = NewDevice {
        user_id: "user-1".parse().expect("a user"),
        device_id: "device-1".parse().expect("a device"),
        expo_push_token: "ExponentPushToken[one]".parse().expect("a token"),
        platform: Platform::Ios,
    };
    world.push.register(device).await.expect("registered");
    let push = json!({"push": {"userId": "${owner}", "title": "Battery", "body": "${topic(2)}: ${volts} V"}});
    world
        .create("tell", action("SELECT * FROM 'van/+/low'", push))
        .await;
    world
        .send("van/a/low", r#"{"owner": "user-1", "volts": 11.5}"#)
        .await;
    let page = world
        .push
        .notifications(&user, 10, None)
        .await
        .expect("notifications");
    assert_eq!(page.items.len(), 1);
    let message: Value = Value::Object(page.items[0].message.members().clone());
    assert_eq!(message, json!({"title": "Battery", "body": "a: 11.5 V"}));
    world
        .send("van/a/low", r#"{"owner": "no one here", "volts": 11.5}"#)
        .await;
    assert_eq!(world.counts("tell").actions_failed, 1);
}

#[tokio::test]
async fn templates_can_use_statement_variables() {
    let world = world().await;
    let republish = json!({"republish": {"topic": "by/${@thing}"}});
    let sql = "SET @thing = topic(2) SELECT * FROM 'v/+'";
    world.create("variable", action(sql, republish)).await;
    world.send("v/a", "{}").await;
    assert_eq!(world.broker.take()[0].topic, "by/a");
}
