//! Moves all tables between endpoints: our own protocol and third-party services, in both
//! directions, during writes, and interrupted and resumed.

mod fixture;
#[allow(dead_code)]
#[path = "../script/mod.rs"]
mod script;
mod slow_target;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection,
    ProjectionType, ProvisionedThroughput, ProvisionedThroughputDescription, ScalarAttributeType,
};
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use fixture::{Places, all, edges, fill, put, rich, simple};
use homeport_item::schema::{StreamView, TableSchema};
use homeport_item::{Item, KeyKind};
use homeport_remote::{MoveError, MoveOptions, MoveTables, TableOptions};
use homeport_store::{Clock as _, Delete, ManualClock, Put, Store};
use homeport_test_backends::Kind;

async fn moves_everything(source: Kind, target: Kind) {
    let places = Places::start(source, target).await;
    let store = places.source.store();
    let plain = simple("plain").with_stream(StreamView::KeysOnly);
    store.ensure_tables(&[rich(), plain]).await.expect("tables");
    for item in edges() {
        store.put(Put::new("rich", item)).await.expect("a put");
    }
    fill(store.as_ref(), "plain", 60).await;
    let before = all(store.as_ref(), "rich").await;
    let compared = places.run().await.expect("a run");
    let names: Vec<_> = compared.iter().map(|table| table.table.as_str()).collect();
    assert_eq!(names, ["plain", "rich"]);
    // Between two runs: a change, a delete, a new item, and unchanged items.
    put(store.as_ref(), "plain", 7, "second").await;
    put(store.as_ref(), "plain", 1000, "new").await;
    let key = Item::new().with("pk", "item-8");
    store.delete(Delete::new("plain", key)).await.expect("gone");
    let finished = places.finish().await.expect("an end");
    for table in &finished {
        assert_eq!(table.source_hash, table.target_hash, "{}", table.table);
        assert_eq!(table.source_items, table.target_items, "{}", table.table);
    }
    assert_eq!(finished[0].source_items, 60);
    places.assert_equal("plain").await;
    places.assert_equal("rich").await;
    assert_eq!(all(store.as_ref(), "rich").await, before, "the source");
    let target = places.target_remote().await;
    let described = target.describe("rich").await.expect("an answer");
    let mut schema = described.expect("the table").schema;
    schema
        .indexes
        .sort_by(|one, other| one.name.cmp(&other.name));
    assert_eq!(schema, rich());
    let source = places.source_remote(TableOptions::default()).await;
    let stream = |described: Option<homeport_remote::TableDescription>| {
        described.expect("the table").schema.stream
    };
    let rich_now = source.describe("rich").await.expect("an answer");
    assert_eq!(stream(rich_now), None, "switched off again");
    for place in [&source, &target] {
        let plain = place.describe("plain").await.expect("an answer");
        assert_eq!(stream(plain), Some(StreamView::KeysOnly), "its own");
    }
    assert!(!places.notes().exists());
}

#[tokio::test]
async fn moves_everything_from_ours_to_ours() {
    moves_everything(Kind::Wire, Kind::Wire).await;
}

#[tokio::test]
async fn moves_everything_from_ours_to_dynoxide() {
    moves_everything(Kind::Wire, Kind::Dynoxide).await;
}

#[tokio::test]
async fn moves_everything_from_ours_to_moto() {
    moves_everything(Kind::Wire, Kind::Moto).await;
}

#[tokio::test]
async fn moves_everything_from_dynoxide_to_ours() {
    moves_everything(Kind::Dynoxide, Kind::Wire).await;
}

#[tokio::test]
async fn moves_everything_from_moto_to_ours() {
    moves_everything(Kind::Moto, Kind::Wire).await;
}

async fn what_a_table_has_beyond_its_schema_arrives(target: Kind) {
    let places = Places::start(Kind::Wire, target).await;
    let options = TableOptions {
        point_in_time_recovery: true,
        tags: BTreeMap::from([("project".to_owned(), "homeport".to_owned())]),
        deletion_protection: true,
        ..TableOptions::default()
    };
    let source = places.source_remote(options.clone()).await;
    source.ensure_tables(&[simple("kept")]).await.expect("made");
    fill(&source, "kept", 3).await;
    places.finish().await.expect("an end");
    let described = places.target_remote().await.describe("kept").await;
    let described = described.expect("an answer").expect("the table");
    assert!(described.point_in_time_recovery);
    assert!(described.deletion_protection);
    assert_eq!(described.tags, options.tags);
}

#[tokio::test]
async fn moves_tags_recovery_and_protection_to_ours() {
    what_a_table_has_beyond_its_schema_arrives(Kind::Wire).await;
}

#[tokio::test]
async fn moves_tags_recovery_and_protection_to_moto() {
    what_a_table_has_beyond_its_schema_arrives(Kind::Moto).await;
}

/// Writes to a table until it is stopped: changes, deletes and new items.
struct Writer {
    stop: Arc<AtomicBool>,
    written: Arc<AtomicU64>,
    task: tokio::task::JoinHandle<()>,
}

impl Writer {
    fn start(store: Arc<dyn Store>, table: &'static str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let written = Arc::new(AtomicU64::new(0));
        let (stopping, count) = (Arc::clone(&stop), Arc::clone(&written));
        let task = tokio::spawn(async move {
            let mut place = 0;
            while !stopping.load(Ordering::Relaxed) {
                place += 1;
                match place % 3 {
                    0 => put(store.as_ref(), table, place % 200, "changed").await,
                    1 => put(store.as_ref(), table, 10_000 + place, "new").await,
                    _ => {
                        let key = Item::new().with("pk", format!("item-{}", place % 100));
                        store.delete(Delete::new(table, key)).await.expect("gone");
                    }
                }
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self {
            stop,
            written,
            task,
        }
    }

    async fn has_written(&self, count: u64) {
        let wanted = self.written.load(Ordering::Relaxed) + count;
        let reached = async {
            while self.written.load(Ordering::Relaxed) < wanted {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let reached = tokio::time::timeout(Duration::from_secs(60), reached).await;
        reached.expect("the writer writes");
    }

    async fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.expect("it ends");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_during_the_move_arrive() {
    let places = Places::start(Kind::Wire, Kind::Dynoxide).await;
    let store = places.source.store();
    store.ensure_tables(&[simple("busy")]).await.expect("made");
    fill(store.as_ref(), "busy", 2000).await;
    let writer = Writer::start(Arc::clone(&store), "busy");
    writer.has_written(20).await;
    let compared = places.run().await.expect("a run under writes");
    assert!(compared[0].different.is_empty(), "{compared:?}");
    let refused = places.finish().await;
    assert!(
        matches!(refused, Err(MoveError::StillWritten(_))),
        "{refused:?}"
    );
    writer.has_written(20).await;
    writer.end().await;
    let finished = places.finish().await.expect("an end");
    assert_eq!(finished[0].source_hash, finished[0].target_hash);
    places.assert_equal("busy").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeatedly_interrupted_move_completes() {
    let places = Places::start(Kind::Wire, Kind::Wire).await;
    let store = places.source.store();
    let tables = ["one", "two", "three"].map(simple);
    store.ensure_tables(&tables).await.expect("made");
    for table in &tables {
        fill(store.as_ref(), &table.name, 300).await;
    }
    let writer = Writer::start(Arc::clone(&store), "two");
    let mut cuts = 0;
    let mut patience = Duration::from_millis(20);
    loop {
        let mut moving = places.open(false).await.expect("opened");
        match tokio::time::timeout(patience, moving.run()).await {
            Err(_) => cuts += 1,
            Ok(outcome) => {
                outcome.expect("a run");
                break;
            }
        }
        patience = patience * 3 / 2;
        assert!(patience < Duration::from_secs(60), "it never ends");
    }
    assert!(cuts > 3, "cut off {cuts} times only");
    writer.end().await;
    places.finish().await.expect("an end");
    for table in &tables {
        places.assert_equal(&table.name).await;
    }
}

#[tokio::test]
async fn foreign_items_stop_the_move_without_changes() {
    let places = Places::start(Kind::Wire, Kind::Dynoxide).await;
    let store = places.source.store();
    let tables = [simple("first"), simple("second")];
    store.ensure_tables(&tables).await.expect("made");
    fill(store.as_ref(), "first", 5).await;
    fill(store.as_ref(), "second", 5).await;
    let target = places.target.store();
    target.ensure_tables(&tables[1..]).await.expect("made");
    put(target.as_ref(), "second", 77, "foreign").await;
    let refused = places.run().await;
    let Err(MoveError::Foreign(found)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(found, ["second"]);
    let remote = places.target_remote().await;
    assert_eq!(remote.describe("first").await, Ok(None), "not begun");
    let source = places.source_remote(TableOptions::default()).await;
    let first = source.describe("first").await.expect("an answer");
    assert_eq!(first.expect("the table").schema.stream, None);
    assert_eq!(all(target.as_ref(), "second").await.len(), 1);
    // With `replace` they are replaced.
    let mut moving = places.open(true).await.expect("opened");
    moving.run().await.expect("a run");
    drop(moving);
    places.finish().await.expect("an end");
    places.assert_equal("second").await;
}

#[tokio::test]
async fn empty_target_table_with_same_keys_is_used() {
    let places = Places::start(Kind::Wire, Kind::Dynoxide).await;
    let store = places.source.store();
    store.ensure_tables(&[rich()]).await.expect("made");
    for item in edges().into_iter().take(5) {
        store.put(Put::new("rich", item)).await.expect("a put");
    }
    // Created by someone else, without time to live.
    let mut bare = rich();
    bare.ttl_attribute = None;
    let target = places.target.store();
    target.ensure_tables(&[bare]).await.expect("made");
    places.finish().await.expect("an end");
    places.assert_equal("rich").await;
    let described = places.target_remote().await.describe("rich").await;
    let schema = described.expect("an answer").expect("the table").schema;
    assert_eq!(schema.ttl_attribute.as_deref(), Some("expires"));
}

#[tokio::test]
async fn empty_target_table_with_other_keys_is_rejected() {
    let places = Places::start(Kind::Wire, Kind::Wire).await;
    let store = places.source.store();
    store.ensure_tables(&[rich()]).await.expect("made");
    let target = places.target.store();
    let other = TableSchema::new("rich", "pk", KeyKind::B);
    target.ensure_tables(&[other]).await.expect("made");
    let refused = places.run().await.expect_err("other keys");
    let MoveError::Store { error, .. } = &refused else {
        panic!("{refused:?}");
    };
    assert!(error.to_string().contains("different keys"), "{error}");
}

#[tokio::test]
async fn single_changed_attribute_is_detected() {
    let places = Places::start(Kind::Wire, Kind::Dynoxide).await;
    let store = places.source.store();
    store
        .ensure_tables(&[simple("things")])
        .await
        .expect("made");
    fill(store.as_ref(), "things", 100).await;
    places.run().await.expect("equal");
    let target = places.target.store();
    put(target.as_ref(), "things", 42, "First").await;
    let outcome = places.finish().await;
    let Err(MoveError::Different(found, 1)) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(
        found,
        [r#"things (1 items, such as {"pk":{"S":"item-42"}})"#]
    );
    put(target.as_ref(), "things", 42, "first").await;
    places.run().await.expect("equal again");
    // One extra item and one missing item.
    put(target.as_ref(), "things", 4711, "first").await;
    let key = Item::new().with("pk", "item-1");
    target
        .delete(Delete::new("things", key))
        .await
        .expect("gone");
    let outcome = places.run().await;
    let Err(MoveError::Different(found, 1)) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(found[0].starts_with("things (2 items"), "{found:?}");
}

#[tokio::test]
async fn table_with_lost_changes_is_copied_again() {
    let places = Places::start(Kind::Wire, Kind::Dynoxide).await;
    let store = places.source.store();
    store
        .ensure_tables(&[simple("things")])
        .await
        .expect("made");
    fill(store.as_ref(), "things", 30).await;
    places.run().await.expect("a run");
    assert_eq!(places.events_with("CopyRestarted"), 0);
    // Abandoning disables the stream; restoring the state file simulates that someone else disabled
    // it.
    let notes = std::fs::read(places.notes()).expect("notes");
    let mut moving = places.open(false).await.expect("opened");
    moving.abandon().await.expect("given up");
    drop(moving);
    assert!(!places.notes().exists());
    let key = Item::new().with("pk", "item-3");
    store
        .delete(Delete::new("things", key))
        .await
        .expect("gone");
    put(store.as_ref(), "things", 4, "unseen").await;
    std::fs::write(places.notes(), notes).expect("notes");
    places.finish().await.expect("an end");
    assert_eq!(places.events_with("CopyRestarted"), 1);
    places.assert_equal("things").await;
}

#[tokio::test]
async fn table_missing_at_target_is_copied_again() {
    let mut places = Places::start(Kind::Wire, Kind::Dynoxide).await;
    let store = places.source.store();
    store
        .ensure_tables(&[simple("things")])
        .await
        .expect("made");
    fill(store.as_ref(), "things", 30).await;
    places.run().await.expect("a run");
    let elsewhere = Places::start(Kind::Wire, Kind::Dynoxide).await;
    places.target = elsewhere.target;
    places.finish().await.expect("an end");
    places.assert_equal("things").await;
}

#[tokio::test]
async fn expired_items_are_not_compared() {
    let clock = Arc::new(ManualClock::at_ms(1_800_000_000_000));
    let places = Places::with_clock(Kind::Wire, Kind::Dynoxide, clock.clone()).await;
    let store = places.source.store();
    store.ensure_tables(&[rich()]).await.expect("made");
    let soon = clock.now_secs() + 10;
    for item in edges().into_iter().take(4) {
        let item = item.with("expires", soon);
        store.put(Put::new("rich", item)).await.expect("a put");
    }
    let last = edges().swap_remove(5);
    store.put(Put::new("rich", last)).await.expect("a put");
    let compared = places.run().await.expect("a run");
    assert_eq!(compared[0].source_items, 5);
    clock.advance_ms(11_000);
    let finished = places.finish().await.expect("an end");
    assert_eq!((finished[0].source_items, finished[0].target_items), (1, 1));
    assert_eq!(finished[0].source_hash, finished[0].target_hash);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn throttled_writes_to_target_are_retried() {
    let mut places = Places::start(Kind::Wire, Kind::Wire).await;
    let store = places.source.store();
    store.ensure_tables(&[simple("busy")]).await.expect("made");
    fill(store.as_ref(), "busy", 400).await;
    let (url, refused) = slow_target::before(&places.target.endpoint().url).await;
    places.target_url = Some(url);
    places.finish().await.expect("an end");
    places.assert_equal("busy").await;
    assert_eq!(refused.requests.load(Ordering::Relaxed), 2);
    assert!(refused.parts.load(Ordering::Relaxed) > 4, "{refused:?}");
}

#[tokio::test]
async fn unselected_tables_are_not_moved() {
    let places = Places::start(Kind::Dynoxide, Kind::Wire).await;
    let store = places.source.store();
    let tables = ["ours", "later", "theirs"].map(simple);
    store.ensure_tables(&tables).await.expect("made");
    for table in &tables {
        fill(store.as_ref(), &table.name, 3).await;
    }
    let options = |tables| MoveOptions {
        tables,
        replace: false,
    };
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    let missing = MoveTables::Named(names(&["ours", "nowhere"]));
    let mut moving = places.open_with(options(missing)).await.expect("opened");
    let refused = moving.run().await;
    assert!(
        matches!(&refused, Err(MoveError::NoTable(table)) if table == "nowhere"),
        "{refused:?}"
    );
    drop(moving);
    let known = MoveTables::Known(names(&["ours", "nowhere"]));
    let mut moving = places.open_with(options(known)).await.expect("opened");
    moving.run().await.expect("a run");
    drop(moving);
    assert_eq!(places.events_with("moved: 1, others: 2"), 1);
    // A table with which the move has started stays part of it, whatever is requested.
    let later = MoveTables::Named(names(&["later"]));
    let mut moving = places.open_with(options(later)).await.expect("opened");
    let finished = moving.finish().await.expect("an end");
    assert_eq!(finished.len(), 2);
    places.assert_equal("ours").await;
    places.assert_equal("later").await;
    let target = places.target_remote().await;
    assert_eq!(target.describe("theirs").await, Ok(None));
    let source = places.source_remote(TableOptions::default()).await;
    for table in &tables {
        let found = source.describe(&table.name).await.expect("an answer");
        assert_eq!(found.expect("the table").schema.stream, None);
    }
    assert_eq!(places.events_with("StreamOn { table: \"theirs\" }"), 0);
}

/// A plain SDK client, for details outside of the `Store` trait.
fn client(backend: &homeport_test_backends::Backend) -> Client {
    let endpoint = backend.endpoint();
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .endpoint_url(&endpoint.url)
        .region(Region::new(endpoint.region.clone()))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .http_client(
            aws_smithy_http_client::Builder::new()
                .tls_provider(Provider::Rustls(CryptoMode::Ring))
                .build_https(),
        );
    Client::from_conf(config.build())
}

async fn provisioned_throughput_arrives(target: Kind) {
    let places = Places::start(Kind::Wire, target).await;
    let throughput = |read, write| {
        let throughput = ProvisionedThroughput::builder();
        let throughput = throughput.read_capacity_units(read);
        throughput
            .write_capacity_units(write)
            .build()
            .expect("complete")
    };
    let key = |name: &str| {
        let key = KeySchemaElement::builder().attribute_name(name);
        key.key_type(KeyType::Hash).build().expect("complete")
    };
    let definition = |name: &str| {
        let definition = AttributeDefinition::builder().attribute_name(name);
        let definition = definition.attribute_type(ScalarAttributeType::S);
        definition.build().expect("complete")
    };
    let everything = Projection::builder().projection_type(ProjectionType::All);
    let index = GlobalSecondaryIndex::builder()
        .index_name("by-group")
        .key_schema(key("g"))
        .projection(everything.build())
        .provisioned_throughput(throughput(4, 5))
        .build()
        .expect("complete");
    let created = client(&places.source)
        .create_table()
        .table_name("paid")
        .attribute_definitions(definition("pk"))
        .attribute_definitions(definition("g"))
        .key_schema(key("pk"))
        .global_secondary_indexes(index)
        .billing_mode(BillingMode::Provisioned)
        .provisioned_throughput(throughput(2, 3));
    created.send().await.expect("a table");
    places.finish().await.expect("an end");
    let described = client(&places.target).describe_table().table_name("paid");
    let described = described.send().await.expect("an answer").table;
    let described = described.expect("the table");
    let units = |found: Option<&ProvisionedThroughputDescription>| {
        let found = found.expect("a throughput");
        (found.read_capacity_units, found.write_capacity_units)
    };
    let table = units(described.provisioned_throughput.as_ref());
    assert_eq!(table, (Some(2), Some(3)));
    let index = &described.global_secondary_indexes()[0];
    let index = units(index.provisioned_throughput.as_ref());
    assert_eq!(index, (Some(4), Some(5)));
}

#[tokio::test]
async fn moves_provisioned_throughput_to_ours() {
    provisioned_throughput_arrives(Kind::Wire).await;
}

#[tokio::test]
async fn moves_provisioned_throughput_to_moto() {
    provisioned_throughput_arrives(Kind::Moto).await;
}
