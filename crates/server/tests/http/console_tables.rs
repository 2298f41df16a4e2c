//! `/v1/tables` over HTTP.

use homeport_item::Item;
use homeport_store::{Put, Store};
use serde_json::{Value, json};

use crate::support::Server;

const TELEMETRY: &str = "/v1/tables/van-telemetry";

/// A server with messages of two things at the times 0 to 9.
async fn server_with_messages() -> Server {
    let server = Server::start().await;
    for thing in ["van-1", "van-2"] {
        for at in 0..10 {
            let kind = if at % 2 == 0 { "telemetry" } else { "status" };
            let item = Item::new()
                .with("thing_name", thing)
                .with("timestamp", at)
                .with("message_type", kind)
                .with("speed", at * 10);
            server
                .engine
                .put(Put::new("van-telemetry", item))
                .await
                .expect("stored");
        }
    }
    server
}

async fn ask(server: &Server, path: &str, body: Value) -> Value {
    let answer = server.as_admin("POST", path, body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body
}

fn times(page: &Value) -> Vec<i64> {
    let items = page["items"].as_array().expect("items").iter();
    let time = |item: &Value| item["timestamp"]["N"].as_str().expect("a number").parse();
    items.map(|item| time(item).expect("whole")).collect()
}

#[tokio::test]
async fn tables_list_keys_indexes_and_counts() {
    let server = server_with_messages().await;
    let table = server.as_admin("GET", TELEMETRY, Value::Null).await.body;
    let index = |name: &str, attribute: &str| {
        json!({
            "name": name, "projection": "ALL", "status": "ACTIVE",
            "keys": {
                "partition": {"name": attribute, "type": "S"},
                "sort": {"name": "timestamp", "type": "N"},
            },
        })
    };
    assert_eq!(
        table,
        json!({
            "name": "van-telemetry", "status": "ACTIVE", "items": 20, "bytes": table["bytes"],
            "keys": {
                "partition": {"name": "thing_name", "type": "S"},
                "sort": {"name": "timestamp", "type": "N"},
            },
            "indexes": [
                index("MessageTypeIndex", "message_type"),
                index("AlertSeverityIndex", "severity"),
            ],
            "ttl_attribute": "ttl",
        })
    );
    let list = server.as_admin("GET", "/v1/tables", Value::Null).await.body;
    let names = list["tables"].as_array().expect("tables").iter();
    assert!(names.clone().any(|table| table["name"] == "evse-events"));
    let answer = server
        .as_admin("GET", "/v1/tables/nothing", Value::Null)
        .await;
    assert_eq!(answer.problem(), (404, "TABLE_NOT_FOUND"));
}

#[tokio::test]
async fn query_supports_keys_filter_order_and_pages() {
    let server = server_with_messages().await;
    let query = format!("{TELEMETRY}/query");
    let of = |more: Value| {
        let mut body = json!({"partition": {"S": "van-1"}});
        body.as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("one").clone());
        body
    };
    let cases = [
        (json!({}), vec![0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (json!({"descending": true, "limit": 2}), vec![9, 8]),
        (
            json!({"sort": {"op": "=", "values": [{"N": "3"}]}}),
            vec![3],
        ),
        (
            json!({"sort": {"op": "<", "values": [{"N": "2"}]}}),
            vec![0, 1],
        ),
        (
            json!({"sort": {"op": "<=", "values": [{"N": "2"}]}}),
            vec![0, 1, 2],
        ),
        (
            json!({"sort": {"op": ">", "values": [{"N": "8"}]}}),
            vec![9],
        ),
        (
            json!({"sort": {"op": ">=", "values": [{"N": "8"}]}}),
            vec![8, 9],
        ),
        (
            json!({"sort": {"op": "between", "values": [{"N": "4"}, {"N": "6"}]}}),
            vec![4, 5, 6],
        ),
        (
            json!({"filter": {"expression": "#s > :s", "names": {"#s": "speed"}, "values": {":s": {"N": "70"}}}}),
            vec![8, 9],
        ),
    ];
    for (more, expected) in cases {
        let page = ask(&server, &query, of(more.clone())).await;
        assert_eq!(times(&page), expected, "{more}");
    }
    let index = json!({"index": "MessageTypeIndex", "partition": {"S": "status"}});
    assert_eq!(times(&ask(&server, &query, index).await).len(), 10);
    // Pages of a filtered query have every item once, and count the scanned ones.
    let filter = json!({"expression": "message_type = :t", "values": {":t": {"S": "status"}}});
    let mut seen = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let page = ask(
            &server,
            &query,
            of(json!({"filter": filter, "limit": 2, "cursor": cursor})),
        )
        .await;
        assert!(page["scanned"].as_u64() > Some(0));
        seen.extend(times(&page));
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(seen, [1, 3, 5, 7, 9]);
}

#[tokio::test]
async fn begins_with_matches_prefixes() {
    let server = Server::start().await;
    for sort in ["Device#1#", "Device#10#", "Group#1#"] {
        let item = Item::new().with("PK", "1").with("SK", sort);
        server
            .engine
            .put(Put::new("awsh-recordstore-dev", item))
            .await
            .expect("stored");
    }
    let body = json!({
        "partition": {"S": "1"}, "sort": {"op": "begins_with", "values": [{"S": "Device#1#"}]},
    });
    let page = ask(&server, "/v1/tables/awsh-recordstore-dev/query", body).await;
    assert_eq!(
        page["items"],
        json!([{"PK": {"S": "1"}, "SK": {"S": "Device#1#"}}])
    );
}

#[tokio::test]
async fn invalid_queries_are_rejected() {
    let server = server_with_messages().await;
    let partition = json!({"S": "van-1"});
    for body in [
        json!({}),
        json!({"partition": {"N": "1"}}),
        json!({"partition": {"X": "1"}}),
        json!({"partition": partition, "sort": {"op": "=", "values": [{"S": "text"}]}}),
        json!({"partition": partition, "sort": {"op": "between", "values": [{"N": "1"}]}}),
        json!({"partition": partition, "sort": {"op": "=", "values": [{"N": "1"}, {"N": "2"}]}}),
        json!({"partition": partition, "sort": {"op": "like", "values": [{"N": "1"}]}}),
        json!({"partition": partition, "sort": {"op": "begins_with", "values": [{"N": "1"}]}}),
        json!({"partition": partition, "filter": {"expression": "speed >"}}),
        json!({"partition": partition, "filter": {"expression": "speed > :s"}}),
        json!({"partition": partition, "filter": {"expression": "speed > :s", "values": {":s": {"N": "1"}, ":t": {"N": "1"}}}}),
        json!({"partition": partition, "limit": 0}),
        json!({"partition": partition, "limit": 1001}),
        json!({"partition": partition, "cursor": "nonsense"}),
    ] {
        let answer = server
            .as_admin("POST", &format!("{TELEMETRY}/query"), body.clone())
            .await;
        assert_eq!(answer.problem().0, 400, "{body}");
    }
    let body = json!({"index": "nothing", "partition": partition});
    let answer = server
        .as_admin("POST", &format!("{TELEMETRY}/query"), body)
        .await;
    assert_eq!(answer.problem(), (404, "INDEX_NOT_FOUND"));
}

#[tokio::test]
async fn scan_returns_every_item_once() {
    let server = server_with_messages().await;
    let mut seen = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let body = json!({"limit": 3, "cursor": cursor});
        let page = ask(&server, &format!("{TELEMETRY}/scan"), body).await;
        let items = page["items"].as_array().expect("items").clone();
        assert!(items.len() <= 3);
        seen.extend(items.iter().map(ToString::to_string));
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(seen.len(), 20);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 20);
}

#[tokio::test]
async fn stale_edit_is_rejected() {
    let server = Server::start().await;
    let items = format!("{TELEMETRY}/items");
    let put = async |body: Value| server.as_admin("PUT", &items, body).await;
    let item = |speed: i64| json!({"thing_name": {"S": "van"}, "timestamp": {"N": "1"}, "speed": {"N": speed.to_string()}});
    assert_eq!(
        put(json!({"item": item(1), "if_unchanged": null}))
            .await
            .status,
        204
    );
    let answer = put(json!({"item": item(2), "if_unchanged": null})).await;
    assert_eq!(answer.problem(), (409, "ITEM_CHANGED"));
    assert_eq!(
        put(json!({"item": item(2), "if_unchanged": item(1)}))
            .await
            .status,
        204
    );
    let answer = put(json!({"item": item(3), "if_unchanged": item(1)})).await;
    assert_eq!(answer.problem(), (409, "ITEM_CHANGED"));
    // An added attribute is a change too.
    let mut more = item(2);
    more["note"] = json!({"S": "new"});
    assert_eq!(put(json!({"item": more})).await.status, 204);
    let answer = put(json!({"item": item(3), "if_unchanged": item(2)})).await;
    assert_eq!(answer.problem(), (409, "ITEM_CHANGED"));
    let delete = async |body: Value| server.as_admin("DELETE", &items, body).await;
    let key = json!({"thing_name": {"S": "van"}, "timestamp": {"N": "1"}});
    let answer = delete(json!({"key": key, "if_unchanged": item(2)})).await;
    assert_eq!(answer.problem(), (409, "ITEM_CHANGED"));
    assert_eq!(
        delete(json!({"key": key, "if_unchanged": more}))
            .await
            .status,
        204
    );
    let body = json!({"partition": {"S": "van"}});
    let page = ask(&server, &format!("{TELEMETRY}/query"), body).await;
    assert_eq!(page["items"], json!([]));
}

#[tokio::test]
async fn invalid_items_are_rejected() {
    let server = Server::start().await;
    let items = format!("{TELEMETRY}/items");
    for body in [
        json!({"item": {"thing_name": {"S": "van"}}}),
        json!({"item": {"thing_name": {"S": "van"}, "timestamp": {"S": "1"}}}),
        json!({"item": {"thing_name": "van", "timestamp": 1}}),
        json!({}),
    ] {
        let answer = server.as_admin("PUT", &items, body.clone()).await;
        assert_eq!(answer.problem().0, 400, "{body}");
    }
    let answer = server
        .as_admin(
            "DELETE",
            &items,
            json!({"key": {"thing_name": {"S": "van"}}}),
        )
        .await;
    assert_eq!(answer.problem().0, 400);
}
