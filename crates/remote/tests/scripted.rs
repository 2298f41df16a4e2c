//! Which requests are retried, and how failures are reported.

mod script;

use std::sync::Arc;
use std::time::Duration;

use homeport_item::Item;
use homeport_item::expression::Update as Changes;
use homeport_remote::{AccessKey, Remote, Settings};
use homeport_store::{
    BatchGet, BatchWrite, CancelReason, Clock as _, Get, Put, Query, Store, StoreError,
    SystemClock, TableKeys, TransactError, Transaction, Update, WriteError, WriteRequest,
};
use script::{Answer, Script, error, success};
use tokio::time::Instant;

const TABLE: &str = "things";

async fn connect(url: &str) -> Remote {
    let settings = Settings {
        endpoint_url: Some(url.to_owned()),
        region: Some("us-east-1".to_owned()),
        access_key: Some(AccessKey::new("test", "test")),
        ..Settings::default()
    };
    let connected = Remote::connect(settings, Arc::new(SystemClock)).await;
    connected.expect("the settings are complete")
}

async fn scripted(answers: impl IntoIterator<Item = Answer>) -> (Remote, Script) {
    let script = Script::start(answers).await;
    (connect(&script.url).await, script)
}

fn thing(pk: &str) -> Item {
    Item::new().with("pk", pk)
}

fn put(pk: &str) -> Put {
    Put::new(TABLE, thing(pk))
}

fn write(pk: &str) -> WriteRequest {
    WriteRequest::Put {
        table: TABLE.to_owned(),
        item: thing(pk),
    }
}

fn unprocessed_writes(keys: &[&str]) -> Answer {
    let writes: Vec<_> = keys
        .iter()
        .map(|pk| format!(r#"{{"PutRequest":{{"Item":{{"pk":{{"S":"{pk}"}}}}}}}}"#))
        .collect();
    success(&format!(
        r#"{{"UnprocessedItems":{{"{TABLE}":[{}]}}}}"#,
        writes.join(",")
    ))
}

fn unprocessed_keys(keys: &[&str], found: &[&str]) -> Answer {
    let items = |keys: &[&str]| {
        let items: Vec<_> = keys
            .iter()
            .map(|pk| format!(r#"{{"pk":{{"S":"{pk}"}}}}"#))
            .collect();
        items.join(",")
    };
    success(&format!(
        r#"{{"Responses":{{"{TABLE}":[{}]}},"UnprocessedKeys":{{"{TABLE}":{{"Keys":[{}]}}}}}}"#,
        items(found),
        items(keys)
    ))
}

fn cancelled(codes: &[&str]) -> Answer {
    let reasons: Vec<_> = codes
        .iter()
        .map(|code| format!(r#"{{"Code":"{code}"}}"#))
        .collect();
    let body = format!(
        r#"{{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"cancelled","CancellationReasons":[{}]}}"#,
        reasons.join(",")
    );
    Some((400, body))
}

/// A failed condition on an item that has expired and still exists.
fn condition_failed_on_expired() -> Answer {
    let expired = SystemClock.now_secs() - 100;
    let body = format!(
        r#"{{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"failed","Item":{{"pk":{{"S":"a"}},"n":{{"N":"7"}},"expires":{{"N":"{expired}"}}}}}}"#
    );
    Some((400, body))
}

fn token(body: &str) -> &str {
    let (_, rest) = body
        .split_once(r#""ClientRequestToken":""#)
        .expect("a token");
    rest.split_once('"').expect("its end").0
}

#[tokio::test]
async fn only_unprocessed_writes_are_resubmitted() {
    let (remote, script) = scripted([
        unprocessed_writes(&["b", "c"]),
        unprocessed_writes(&["c"]),
        success("{}"),
    ])
    .await;
    let writes = ["a", "b", "c"].map(write).into();
    let answer = remote.batch_write(BatchWrite { writes }).await;
    assert_eq!(answer.expect("written").unprocessed, []);
    let asked = script.asked();
    assert_eq!(asked.len(), 3);
    assert!(!asked[1].1.contains(r#""a""#) && asked[1].1.contains(r#""b""#));
    assert!(!asked[2].1.contains(r#""b""#) && asked[2].1.contains(r#""c""#));
}

#[tokio::test]
async fn permanently_unprocessed_writes_are_throttled() {
    let (remote, script) = scripted(std::iter::repeat_n(unprocessed_writes(&["a"]), 100)).await;
    let writes = vec![write("a")];
    let answer = remote.batch_write(BatchWrite { writes }).await;
    assert_eq!(answer, Err(StoreError::Throttled));
    assert_eq!(script.asked().len(), 9);
}

#[tokio::test]
async fn partially_written_batch_returns_the_rest() {
    let (remote, _script) = scripted(std::iter::repeat_n(unprocessed_writes(&["b"]), 100)).await;
    let writes = ["a", "b"].map(write).into();
    let answer = remote.batch_write(BatchWrite { writes }).await;
    assert_eq!(answer.expect("written").unprocessed, [write("b")]);
}

#[tokio::test]
async fn unprocessed_keys_are_requested_again() {
    let (remote, script) = scripted([
        unprocessed_keys(&["b"], &["a"]),
        unprocessed_keys(&[], &["b"]),
    ])
    .await;
    let keys = TableKeys {
        table: TABLE.to_owned(),
        keys: ["a", "b"].map(thing).into(),
        projection: None,
        consistent: true,
    };
    let tables = vec![keys];
    let answer = remote.batch_get(BatchGet { tables }).await.expect("read");
    let found: Vec<_> = answer.items.into_iter().map(|(_, item)| item).collect();
    assert_eq!(found, ["a", "b"].map(thing));
    assert!(!script.asked()[1].1.contains(r#""a""#));
}

#[tokio::test]
async fn conflicting_transaction_is_retried_with_its_token() {
    let conflict = || cancelled(&["None", "TransactionConflict"]);
    let (remote, script) = scripted([conflict(), conflict(), success("{}")]).await;
    let both = Transaction::new(vec![put("a").into(), put("b").into()]);
    assert_eq!(remote.transact(both).await, Ok(()));
    let asked = script.asked();
    assert_eq!(asked.len(), 3);
    assert_eq!(token(&asked[0].1), token(&asked[2].1));
}

#[tokio::test]
async fn unanswered_transaction_is_retried_with_its_token() {
    let (remote, script) = scripted([None, success("{}")]).await;
    let one = Transaction::new(vec![put("a").into()]);
    assert_eq!(remote.transact(one.clone()).await, Ok(()));
    let asked = script.asked();
    assert_eq!(token(&asked[0].1), token(&asked[1].1));
    assert_ne!(remote.transact(one).await, Ok(()), "the script has ended");
    assert_ne!(token(&script.asked()[2].1), token(&asked[0].1));
}

#[tokio::test]
async fn permanent_conflicts_are_reported_per_action() {
    let conflict = cancelled(&["None", "TransactionConflict"]);
    let (remote, script) = scripted(std::iter::repeat_n(conflict, 100)).await;
    let both = Transaction::new(vec![put("a").into(), put("b").into()]);
    assert_eq!(
        remote.transact(both).await,
        Err(TransactError::Cancelled(vec![
            CancelReason::None,
            CancelReason::Conflict
        ]))
    );
    assert_eq!(script.asked().len(), 7);
}

#[tokio::test]
async fn failed_condition_is_not_retried() {
    let (remote, script) = scripted([cancelled(&["ConditionalCheckFailed", "None"])]).await;
    let both = Transaction::new(vec![put("a").into(), put("b").into()]);
    assert_eq!(
        remote.transact(both).await,
        Err(TransactError::Cancelled(vec![
            CancelReason::ConditionFailed { old: None },
            CancelReason::None
        ]))
    );
    assert_eq!(script.asked().len(), 1);
}

#[tokio::test]
async fn unknown_cancel_reason_is_not_invalid() {
    let (remote, script) = scripted([cancelled(&["None", "SomethingNew"])]).await;
    let both = Transaction::new(vec![put("a").into(), put("b").into()]);
    let outcome = remote.transact(both).await;
    let Err(TransactError::Store(StoreError::Unavailable(reason))) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(reason.starts_with("SomethingNew"), "{reason}");
    assert_eq!(script.asked().len(), 1);
}

#[tokio::test]
async fn unanswered_put_is_retried() {
    let (remote, script) = scripted([error(500, "InternalServerError"), success("{}")]).await;
    assert_eq!(remote.put(put("a")).await, Ok(None));
    assert_eq!(script.asked().len(), 2);
}

#[tokio::test]
async fn unanswered_add_is_not_retried() {
    let (remote, script) = scripted([error(500, "InternalServerError"), success("{}")]).await;
    let update = Update::new(TABLE, thing("a"), Changes::new().add("n", 1));
    let outcome = remote.update(update).await;
    assert!(
        matches!(outcome, Err(WriteError::Store(StoreError::Unavailable(_)))),
        "{outcome:?}"
    );
    assert_eq!(script.asked().len(), 1);
}

#[tokio::test]
async fn throttled_add_is_retried() {
    let busy = || error(400, "ProvisionedThroughputExceededException");
    let (remote, script) = scripted([busy(), busy(), success("{}")]).await;
    let update = Update::new(TABLE, thing("a"), Changes::new().add("n", 1));
    assert_eq!(remote.update(update).await, Ok(None));
    assert_eq!(script.asked().len(), 3);
}

#[tokio::test]
async fn unanswered_add_to_expired_item_counts_once() {
    let busy = || error(400, "ProvisionedThroughputExceededException");
    let script = Script::start_expiring([
        condition_failed_on_expired(),
        busy(),
        // Applied, but the response is lost.
        None,
        condition_failed_on_expired(),
        success("{}"),
    ])
    .await;
    let remote = connect(&script.url).await;
    let update = Update::new(TABLE, thing("a"), Changes::new().add("n", 1));
    let outcome = remote.update(update).await;
    assert!(
        matches!(outcome, Err(WriteError::Store(StoreError::Unavailable(_)))),
        "{outcome:?}"
    );
    let operations: Vec<_> = script.asked().into_iter().map(|(name, _)| name).collect();
    assert_eq!(operations, ["UpdateItem", "PutItem", "PutItem"]);
}

#[tokio::test]
async fn unanswered_update_of_expired_item_is_retried() {
    let script = Script::start_expiring([condition_failed_on_expired(), None, success("{}")]).await;
    let remote = connect(&script.url).await;
    let update = Update::new(TABLE, thing("a"), Changes::new().set("n", 1));
    assert_eq!(remote.update(update).await, Ok(None));
    assert_eq!(script.asked().len(), 3);
}

/// The server's timeout of a device's request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::test(start_paused = true)]
async fn store_timeout_is_shorter_than_request_timeout() {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await;
    let listener = listener.expect("a port");
    let address = listener.local_addr().expect("an address");
    let silence = tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok(connection) = listener.accept().await {
            held.push(connection);
        }
    });
    let remote = connect(&format!("http://{address}")).await;
    let started = Instant::now();
    let outcome = remote.get(Get::new(TABLE, thing("a"))).await;
    assert!(
        matches!(outcome, Err(StoreError::Unavailable(_))),
        "{outcome:?}"
    );
    assert!(
        started.elapsed() < REQUEST_TIMEOUT,
        "{:?}",
        started.elapsed()
    );
    silence.abort();
}

#[tokio::test]
async fn permanent_throttling_is_transient_and_bounded() {
    let busy = error(400, "ThrottlingException");
    let (remote, script) = scripted(std::iter::repeat_n(busy, 100)).await;
    let outcome = remote.get(Get::new(TABLE, thing("a"))).await;
    // `Unavailable` if the SDK throttles itself until the request times out.
    let error = outcome.expect_err("the script contains only errors");
    assert!(error.is_transient(), "{error:?}");
    assert!((1..=5).contains(&script.asked().len()));
}

#[tokio::test]
async fn denied_read_is_unavailable_not_missing() {
    for code in ["AccessDeniedException", "UnrecognizedClientException"] {
        let (remote, _script) = scripted([error(400, code)]).await;
        let outcome = remote.get(Get::new(TABLE, thing("a"))).await;
        let Err(StoreError::Unavailable(reason)) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(reason.starts_with(code), "{reason}");
    }
}

#[tokio::test]
async fn connection_failure_makes_the_store_unavailable() {
    // A closed port: the listener is dropped before anyone connects.
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let remote = connect(&format!("http://{address}")).await;
    let outcome = remote.get(Get::new(TABLE, thing("a"))).await;
    assert!(
        matches!(outcome, Err(StoreError::Unavailable(_))),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn deleted_table_is_described_again() {
    let gone = error(400, "ResourceNotFoundException");
    let (remote, _script) = scripted([gone, success(r#"{"Items":[],"Count":0}"#)]).await;
    let query = || {
        let all = homeport_item::expression::KeyCondition::new("pk", "a");
        remote.query(Query::new(TABLE, all))
    };
    let missing = StoreError::TableNotFound(TABLE.to_owned());
    assert_eq!(query().await, Err(missing));
    assert_eq!(query().await.expect("a page").items, []);
}
