//! Table options on moto, which supports them, on our own protocol, and on dynoxide, which does
//! not.

use std::collections::BTreeMap;
use std::sync::Arc;

use homeport_item::KeyKind;
use homeport_item::schema::{IndexProjection, IndexSchema, KeyAttribute, StreamView, TableSchema};
use homeport_remote::{
    ConnectError, Remote, Settings, TableDescription, TableOptions, TableStatus,
};
use homeport_store::{Store, StoreError, SystemClock};
use homeport_test_backends::{Backend, Kind};

async fn start(kind: Kind) -> Backend {
    Backend::start(kind, Arc::new(SystemClock)).await
}

async fn connect(backend: &Backend, options: TableOptions) -> Remote {
    let clock = Arc::new(SystemClock);
    backend.endpoint().connect(clock, options).await
}

fn by_group() -> IndexSchema {
    IndexSchema::global("by-group", KeyAttribute::new("g", KeyKind::S), None)
}

fn schema() -> TableSchema {
    TableSchema::new("things", "pk", KeyKind::S)
        .with_sort("sk", KeyKind::N)
        .with_index(by_group())
        .with_ttl("expires")
}

fn all_options() -> TableOptions {
    TableOptions {
        point_in_time_recovery: true,
        kms_key_id: Some("1234abcd-12ab-34cd-56ef-1234567890ab".to_owned()),
        stream: Some(StreamView::NewAndOldImages),
        tags: BTreeMap::from([("project".to_owned(), "homeport".to_owned())]),
        deletion_protection: true,
    }
}

#[tokio::test]
async fn new_table_gets_all_options() {
    let backend = start(Kind::Moto).await;
    let remote = connect(&backend, all_options()).await;
    assert_eq!(remote.describe("things").await, Ok(None));
    remote.ensure_tables(&[schema()]).await.expect("created");
    let key = check_options(&remote).await.kms_key_arn.expect("a key");
    assert!(
        key.contains("1234abcd-12ab-34cd-56ef-1234567890ab"),
        "{key}"
    );
}

#[tokio::test]
async fn existing_table_gets_missing_options() {
    let backend = start(Kind::Moto).await;
    let plain = TableSchema::new("things", "pk", KeyKind::S).with_sort("sk", KeyKind::N);
    let before = connect(&backend, TableOptions::default()).await;
    before.ensure_tables(&[plain]).await.expect("created");
    // moto does not change the encryption of an existing table.
    let options = TableOptions {
        kms_key_id: None,
        ..all_options()
    };
    let remote = connect(&backend, options).await;
    remote.ensure_tables(&[schema()]).await.expect("completed");
    check_options(&remote).await;
}

async fn check_options(remote: &Remote) -> TableDescription {
    let described = remote.describe("things").await.expect("described");
    let described = described.expect("it is there");
    let expected = schema().with_stream(StreamView::NewAndOldImages);
    assert_eq!(described.schema, expected);
    assert_eq!(described.status, TableStatus::Active);
    assert!(described.indexes_filling.is_empty());
    assert!(described.point_in_time_recovery);
    assert!(described.deletion_protection);
    assert_eq!(described.tags, all_options().tags);
    described
}

#[tokio::test]
async fn other_process_reads_time_to_live_from_table() {
    let backend = start(Kind::Wire).await;
    let first = connect(&backend, TableOptions::default()).await;
    first.ensure_tables(&[schema()]).await.expect("created");
    let second = connect(&backend, TableOptions::default()).await;
    let described = second.describe("things").await.expect("described");
    assert_eq!(described.expect("it is there").schema, schema());
}

#[tokio::test]
async fn unsupported_changes_are_reported() {
    let backend = start(Kind::Wire).await;
    let remote = connect(&backend, TableOptions::default()).await;
    remote.ensure_tables(&[schema()]).await.expect("created");
    let mut local = IndexSchema::global(
        "local",
        KeyAttribute::new("pk", KeyKind::S),
        Some(KeyAttribute::new("at", KeyKind::N)),
    );
    local.local = true;
    let narrow = by_group().projecting(IndexProjection::KeysOnly);
    let keyed = TableSchema::new("things", "pk", KeyKind::S).with_sort("sk", KeyKind::N);
    for (wanted, part) in [
        (
            TableSchema::new("things", "pk", KeyKind::B),
            "exists with different keys: pk (S), sk (N) instead of pk (B)",
        ),
        (schema().with_index(local), "no local index"),
        (keyed.clone().with_index(narrow), "different projection"),
        (
            keyed.with_ttl("other"),
            "time-to-live attribute \"expires\"",
        ),
    ] {
        let outcome = remote.ensure_tables(&[wanted]).await;
        let Err(StoreError::Invalid(reason)) = outcome else {
            panic!("{outcome:?} where {part:?} was expected");
        };
        assert!(reason.to_string().contains(part), "{reason}");
    }
}

#[tokio::test]
async fn missing_recovery_support_differs_from_failure() {
    let backend = start(Kind::Dynoxide).await;
    let wanted = TableOptions {
        point_in_time_recovery: true,
        ..TableOptions::default()
    };
    let remote = connect(&backend, wanted).await;
    let outcome = remote.ensure_tables(&[schema()]).await;
    let Err(StoreError::Invalid(reason)) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(
        reason.to_string().contains("store.point_in_time_recovery"),
        "{reason}"
    );
}

#[tokio::test]
async fn invalid_settings_fail_before_any_request() {
    let settings = Settings {
        endpoint_url: Some("localhost:8000".to_owned()),
        ..Settings::default()
    };
    let outcome = Remote::connect(settings, Arc::new(SystemClock)).await;
    let expected = ConnectError::Endpoint("localhost:8000".to_owned());
    assert_eq!(outcome.err(), Some(expected));
}
