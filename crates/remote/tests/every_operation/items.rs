//! Single items, pages, batches and transactions.

use std::collections::HashMap;

use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::query::QueryError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, DeleteRequest, Get, KeyType, KeysAndAttributes, Put,
    PutRequest, ReturnConsumedCapacity, ReturnValue, ReturnValuesOnConditionCheckFailure,
    ScalarAttributeType, Select, TransactGetItem, TransactWriteItem, Update, WriteRequest,
};

use crate::sdk::{Sdk, definition, element, number, text};

type Item = HashMap<String, AttributeValue>;

/// An item with every type.
fn full(id: &str, at: &str) -> Item {
    let nested = Item::from([(
        "inner".to_owned(),
        AttributeValue::L(vec![text("a"), number("1")]),
    )]);
    Item::from([
        ("id".to_owned(), text(id)),
        ("at".to_owned(), number(at)),
        ("empty".to_owned(), text("")),
        ("bytes".to_owned(), AttributeValue::B(Blob::new([0, 255]))),
        ("yes".to_owned(), AttributeValue::Bool(true)),
        ("null".to_owned(), AttributeValue::Null(true)),
        ("map".to_owned(), AttributeValue::M(nested)),
        ("texts".to_owned(), AttributeValue::Ss(vec!["a".to_owned()])),
        (
            "numbers".to_owned(),
            AttributeValue::Ns(vec!["1.5".to_owned()]),
        ),
        ("blobs".to_owned(), AttributeValue::Bs(vec![Blob::new([1])])),
    ])
}

fn key(id: &str, at: &str) -> Item {
    Item::from([("id".to_owned(), text(id)), ("at".to_owned(), number(at))])
}

pub(crate) async fn check(sdk: &Sdk) {
    let created = sdk
        .tables
        .create_table()
        .table_name("items")
        .attribute_definitions(definition("id", ScalarAttributeType::S))
        .attribute_definitions(definition("at", ScalarAttributeType::N))
        .key_schema(element("id", KeyType::Hash))
        .key_schema(element("at", KeyType::Range))
        .billing_mode(aws_sdk_dynamodb::types::BillingMode::PayPerRequest);
    created.send().await.expect("a table");
    check_single(sdk).await;
    check_pages(sdk).await;
    check_batches(sdk).await;
    check_transactions(sdk).await;
}

async fn check_single(sdk: &Sdk) {
    let put = sdk
        .tables
        .put_item()
        .table_name("items")
        .set_item(Some(full("a", "1")))
        .return_values(ReturnValue::AllOld)
        .return_consumed_capacity(ReturnConsumedCapacity::Total);
    let first = put.clone().send().await.expect("a put");
    assert_eq!(first.attributes, None);
    let capacity = first.consumed_capacity.expect("capacity");
    assert_eq!(capacity.capacity_units, Some(1.0));
    assert_eq!(capacity.table_name(), Some("items"));
    let second = put.send().await.expect("a put");
    assert_eq!(second.attributes, Some(full("a", "1")));
    let got = sdk
        .tables
        .get_item()
        .table_name("items")
        .set_key(Some(key("a", "1")))
        .consistent_read(true)
        .send()
        .await
        .expect("a read");
    assert_eq!(got.item, Some(full("a", "1")));
    let missing = sdk.tables.get_item().table_name("items");
    let missing = missing.set_key(Some(key("a", "2"))).send().await;
    assert_eq!(missing.expect("a read").item, None);
    let updated = sdk
        .tables
        .update_item()
        .table_name("items")
        .set_key(Some(key("a", "1")))
        .update_expression("SET #n = if_not_exists(#n, :zero) + :one ADD numbers :more REMOVE yes")
        .expression_attribute_names("#n", "count")
        .expression_attribute_values(":zero", number("0"))
        .expression_attribute_values(":one", number("1"))
        .expression_attribute_values(":more", AttributeValue::Ns(vec!["2".to_owned()]))
        .return_values(ReturnValue::AllNew)
        .send()
        .await
        .expect("an update");
    let now = updated.attributes.expect("the item");
    assert_eq!(now["count"], number("1"));
    assert!(!now.contains_key("yes"));
    let mut numbers = now["numbers"].as_ns().expect("a set").clone();
    numbers.sort_unstable();
    assert_eq!(numbers, ["1.5", "2"]);
    let deleted = sdk
        .tables
        .delete_item()
        .table_name("items")
        .set_key(Some(key("a", "1")))
        .condition_expression("attribute_exists(id)")
        .return_values(ReturnValue::AllOld)
        .send()
        .await
        .expect("a removal");
    assert_eq!(deleted.attributes, Some(now));
}

async fn check_pages(sdk: &Sdk) {
    for at in 0..10 {
        let mut item = full("pages", &at.to_string());
        item.insert("place".to_owned(), number(&at.to_string()));
        let put = sdk.tables.put_item().table_name("items");
        put.set_item(Some(item)).send().await.expect("a put");
    }
    let query = sdk
        .tables
        .query()
        .table_name("items")
        .key_condition_expression("id = :id AND #at BETWEEN :from AND :to")
        .filter_expression("place <> :three")
        .projection_expression("#at")
        .expression_attribute_names("#at", "at")
        .expression_attribute_values(":id", text("pages"))
        .expression_attribute_values(":from", number("2"))
        .expression_attribute_values(":to", number("8"))
        .expression_attribute_values(":three", number("3"))
        .scan_index_forward(false)
        .limit(4);
    let first = query.clone().send().await.expect("a page");
    let places = |items: &[Item]| -> Vec<String> {
        let place = |item: &Item| item["at"].as_n().expect("a number").clone();
        items.iter().map(place).collect()
    };
    assert_eq!(places(first.items()), ["8", "7", "6", "5"]);
    let next = first.last_evaluated_key.expect("more");
    let second = query.set_exclusive_start_key(Some(next)).send().await;
    let second = second.expect("a page");
    assert_eq!(places(second.items()), ["4", "2"]);
    assert_eq!((second.count, second.scanned_count), (2, 3));
    assert_eq!(second.last_evaluated_key, None);
    let mut counted = 0;
    for segment in 0..3 {
        let scanned = sdk
            .tables
            .scan()
            .table_name("items")
            .segment(segment)
            .total_segments(3)
            .select(Select::Count)
            .send()
            .await
            .expect("a page");
        assert!(scanned.items.is_none());
        counted += scanned.count;
    }
    assert_eq!(counted, 10);
    // The SDK's paginator.
    let pages = sdk.tables.scan().table_name("items").limit(3);
    let mut pages = pages.into_paginator().items().send();
    let mut all = 0;
    while let Some(item) = pages.next().await {
        assert!(item.expect("an item").contains_key("bytes"));
        all += 1;
    }
    assert_eq!(all, 10);
}

async fn check_batches(sdk: &Sdk) {
    let put = PutRequest::builder().set_item(Some(full("batch", "1")));
    let put = put.build().expect("complete");
    let delete = DeleteRequest::builder().set_key(Some(key("pages", "0")));
    let delete = delete.build().expect("complete");
    let written = sdk
        .tables
        .batch_write_item()
        .request_items(
            "items",
            vec![
                WriteRequest::builder().put_request(put).build(),
                WriteRequest::builder().delete_request(delete).build(),
            ],
        )
        .send()
        .await
        .expect("a batch");
    assert!(written.unprocessed_items.expect("a map").is_empty());
    let keys = KeysAndAttributes::builder()
        .keys(key("batch", "1"))
        .keys(key("pages", "0"))
        .consistent_read(true)
        .build()
        .expect("complete");
    let read = sdk.tables.batch_get_item().request_items("items", keys);
    let read = read.send().await.expect("a batch");
    assert_eq!(
        read.responses.expect("items")["items"],
        [full("batch", "1")]
    );
    assert!(read.unprocessed_keys.expect("a map").is_empty());
}

async fn check_transactions(sdk: &Sdk) {
    let put = Put::builder().table_name("items");
    let put = put.set_item(Some(full("transaction", "1"))).build();
    let update = Update::builder()
        .table_name("items")
        .set_key(Some(key("batch", "1")))
        .update_expression("SET note = :note")
        .expression_attribute_values(":note", text("changed"))
        .build()
        .expect("complete");
    let check = ConditionCheck::builder()
        .table_name("items")
        .set_key(Some(key("pages", "1")))
        .condition_expression("attribute_exists(id)")
        .build()
        .expect("complete");
    let delete = aws_sdk_dynamodb::types::Delete::builder();
    let delete = delete.table_name("items").set_key(Some(key("pages", "2")));
    let item = TransactWriteItem::builder;
    let request = sdk
        .tables
        .transact_write_items()
        .transact_items(item().put(put.expect("complete")).build())
        .transact_items(item().update(update).build())
        .transact_items(item().condition_check(check).build())
        .transact_items(item().delete(delete.build().expect("complete")).build())
        .client_request_token("token-of-the-sdk");
    request.clone().send().await.expect("a transaction");
    request.send().await.expect("the same again");
    let get = |id: &str, at: &str| {
        let get = Get::builder().table_name("items");
        let get = get.set_key(Some(key(id, at))).build().expect("complete");
        TransactGetItem::builder().get(get).build()
    };
    let read = sdk
        .tables
        .transact_get_items()
        .transact_items(get("batch", "1"))
        .transact_items(get("pages", "2"))
        .transact_items(get("transaction", "1"))
        .send()
        .await
        .expect("a transaction");
    let found = read.responses();
    assert_eq!(found.len(), 3);
    let first = found[0].item.as_ref().expect("an item");
    assert_eq!(first["note"], text("changed"));
    assert_eq!(found[1].item, None);
    assert_eq!(found[2].item, Some(full("transaction", "1")));
}

pub(crate) async fn check_failures(sdk: &Sdk) {
    let put = sdk
        .tables
        .put_item()
        .table_name("items")
        .set_item(Some(full("transaction", "1")))
        .condition_expression("attribute_not_exists(id)")
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
    let failed = put.send().await.expect_err("it is there");
    let PutItemError::ConditionalCheckFailedException(failed) = failed.into_service_error() else {
        panic!("another error");
    };
    assert_eq!(failed.message(), Some("The conditional request failed"));
    assert_eq!(failed.item, Some(full("transaction", "1")));
    let put = Put::builder()
        .table_name("items")
        .set_item(Some(full("transaction", "1")))
        .condition_expression("attribute_not_exists(id)")
        .build()
        .expect("complete");
    let other = Put::builder().table_name("items");
    let other = other.set_item(Some(full("never", "1"))).build();
    let item = TransactWriteItem::builder;
    let cancelled = sdk
        .tables
        .transact_write_items()
        .transact_items(item().put(other.expect("complete")).build())
        .transact_items(item().put(put).build())
        .send()
        .await
        .expect_err("cancelled");
    let TransactWriteItemsError::TransactionCanceledException(cancelled) =
        cancelled.into_service_error()
    else {
        panic!("another error");
    };
    let codes: Vec<_> = cancelled
        .cancellation_reasons()
        .iter()
        .map(|reason| reason.code())
        .collect();
    assert_eq!(codes, [Some("None"), Some("ConditionalCheckFailed")]);
    let missing = sdk.tables.query().table_name("nowhere");
    let missing = missing
        .key_condition_expression("id = :id")
        .expression_attribute_values(":id", text("a"));
    let missing = missing.send().await.expect_err("no table");
    assert!(matches!(
        missing.into_service_error(),
        QueryError::ResourceNotFoundException(_)
    ));
    let wrong = sdk
        .tables
        .update_item()
        .table_name("items")
        .set_key(Some(key("a", "1")))
        .update_expression("SET id = :id")
        .expression_attribute_values(":id", text("b"));
    let wrong = wrong.send().await.expect_err("a key").into_service_error();
    assert!(!matches!(
        wrong,
        UpdateItemError::ResourceNotFoundException(_)
    ));
    assert_eq!(wrong.meta().code(), Some("ValidationException"));
    let message = wrong.meta().message().expect("a message");
    assert!(message.contains("part of the key"), "{message}");
}
