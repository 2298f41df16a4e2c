//! PartiQL.

use aws_sdk_dynamodb::operation::execute_transaction::ExecuteTransactionError;
use aws_sdk_dynamodb::types::{
    BatchStatementErrorCodeEnum, BatchStatementRequest, ParameterizedStatement,
};

use crate::sdk::{Sdk, number, text};

pub(crate) async fn check(sdk: &Sdk) {
    sdk.create("statements").await;
    let insert = sdk
        .tables
        .execute_statement()
        .statement("INSERT INTO statements VALUE {'id': ?, 'n': ?}")
        .parameters(text("a"))
        .parameters(number("1"));
    let inserted = insert.send().await.expect("an insert");
    assert!(inserted.items().is_empty());
    let select = sdk.tables.execute_statement();
    let select = select.statement("SELECT n FROM statements WHERE id = 'a'");
    let selected = select.send().await.expect("a page");
    assert_eq!(selected.items().len(), 1);
    assert_eq!(selected.items()[0]["n"], number("1"));
    let statement = |text: &str| {
        let statement = BatchStatementRequest::builder().statement(text);
        statement.build().expect("complete")
    };
    let batch = sdk
        .tables
        .batch_execute_statement()
        .statements(statement("SELECT * FROM statements WHERE id = 'a'"))
        .statements(statement("SELECT * FROM nowhere WHERE id = 'a'"))
        .send()
        .await
        .expect("a batch");
    let answers = batch.responses();
    let item = answers[0].item.as_ref().expect("an item");
    assert_eq!(item["id"], text("a"));
    assert_eq!(answers[0].table_name(), Some("statements"));
    let error = answers[1].error.as_ref().expect("an error");
    assert_eq!(
        error.code,
        Some(BatchStatementErrorCodeEnum::ResourceNotFound)
    );
    let statement = |text: &str| {
        let statement = ParameterizedStatement::builder().statement(text);
        statement.build().expect("complete")
    };
    let update = "UPDATE statements SET n = 2 WHERE id = 'a'";
    sdk.tables
        .execute_transaction()
        .transact_statements(statement(update))
        .transact_statements(statement("INSERT INTO statements VALUE {'id': 'b'}"))
        .send()
        .await
        .expect("a transaction");
    let read = sdk
        .tables
        .execute_transaction()
        .transact_statements(statement("SELECT * FROM statements WHERE id = 'a'"))
        .transact_statements(statement("SELECT * FROM statements WHERE id = 'z'"))
        .send()
        .await
        .expect("a transaction");
    assert_eq!(read.responses().len(), 2);
    let first = read.responses()[0].item.as_ref().expect("an item");
    assert_eq!(first["n"], number("2"));
    assert_eq!(read.responses()[1].item, None);
    let again = sdk
        .tables
        .execute_transaction()
        .transact_statements(statement("INSERT INTO statements VALUE {'id': 'b'}"))
        .send()
        .await
        .expect_err("it is there");
    let ExecuteTransactionError::TransactionCanceledException(again) = again.into_service_error()
    else {
        panic!("another error");
    };
    let reason = &again.cancellation_reasons()[0];
    assert_eq!(reason.code(), Some("DuplicateItem"));
}
