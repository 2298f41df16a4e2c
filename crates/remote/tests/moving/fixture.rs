//! Two endpoints with data, and a move between them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use homeport_item::schema::{IndexProjection, IndexSchema, KeyAttribute, TableSchema};
use homeport_item::{Item, KeyKind, Map, Number, Set, Value};
use homeport_remote::{
    Move, MoveEndpoint, MoveError, MoveEvent, MoveOptions, MoveTables, Remote, TableComparison,
    TableOptions,
};
use homeport_store::{Clock, Put, Scan, Store, SystemClock};
use homeport_test_backends::{Backend, Endpoint, Kind};

/// A source, a target, and the state file of the move.
pub(crate) struct Places {
    pub(crate) source: Backend,
    pub(crate) target: Backend,
    /// The URL of the target, if it is reached through a proxy.
    pub(crate) target_url: Option<String>,
    clock: Arc<dyn Clock>,
    directory: tempfile::TempDir,
    events: Arc<Mutex<Vec<String>>>,
}

impl Places {
    pub(crate) async fn start(source: Kind, target: Kind) -> Self {
        Self::with_clock(source, target, Arc::new(SystemClock)).await
    }

    pub(crate) async fn with_clock(source: Kind, target: Kind, clock: Arc<dyn Clock>) -> Self {
        Self {
            source: Backend::start(source, Arc::clone(&clock)).await,
            target: Backend::start(target, Arc::clone(&clock)).await,
            target_url: None,
            clock,
            directory: tempfile::tempdir().expect("a directory"),
            events: Arc::default(),
        }
    }

    async fn place(&self, endpoint: &Endpoint, name: &str) -> MoveEndpoint {
        let clock = Arc::clone(&self.clock);
        let remote = endpoint.connect(clock, TableOptions::default());
        MoveEndpoint {
            remote: Arc::new(remote.await),
            name: name.to_owned(),
        }
    }

    /// Opens the move as another process would.
    pub(crate) async fn open(&self, replace: bool) -> Result<Move, MoveError> {
        let tables = MoveTables::All;
        self.open_with(MoveOptions { tables, replace }).await
    }

    pub(crate) async fn open_with(&self, options: MoveOptions) -> Result<Move, MoveError> {
        let mut endpoint = self.target.endpoint().clone();
        if let Some(url) = &self.target_url {
            endpoint.url.clone_from(url);
        }
        let source = self.place(self.source.endpoint(), "source").await;
        let target = self.place(&endpoint, "target").await;
        let events = Arc::clone(&self.events);
        let observer = Box::new(move |event: &MoveEvent<'_>| {
            events.lock().expect("events").push(format!("{event:?}"));
        });
        Move::open(source, target, &self.notes(), options, observer)
    }

    pub(crate) fn notes(&self) -> std::path::PathBuf {
        Path::new(self.directory.path()).join("move.json")
    }

    pub(crate) async fn run(&self) -> Result<Vec<TableComparison>, MoveError> {
        self.open(false).await?.run().await
    }

    pub(crate) async fn finish(&self) -> Result<Vec<TableComparison>, MoveError> {
        self.open(false).await?.finish().await
    }

    /// How many reported events contain `part`.
    pub(crate) fn events_with(&self, part: &str) -> usize {
        let events = self.events.lock().expect("events");
        events.iter().filter(|event| event.contains(part)).count()
    }

    pub(crate) async fn source_remote(&self, options: TableOptions) -> Remote {
        let clock = Arc::clone(&self.clock);
        self.source.endpoint().connect(clock, options).await
    }

    pub(crate) async fn target_remote(&self) -> Remote {
        let clock = Arc::clone(&self.clock);
        let endpoint = self.target.endpoint();
        endpoint.connect(clock, TableOptions::default()).await
    }

    pub(crate) async fn assert_equal(&self, table: &str) {
        let source = all(self.source.store().as_ref(), table).await;
        let target = all(self.target.store().as_ref(), table).await;
        assert!(!source.is_empty(), "nothing to compare in {table}");
        assert_eq!(source, target, "{table}");
    }
}

/// Every item of a table by its text, which is the same for equal items.
pub(crate) async fn all(store: &dyn Store, table: &str) -> BTreeMap<String, Item> {
    let mut items = BTreeMap::new();
    let mut start = None;
    loop {
        let mut scan = Scan::new(table);
        scan.consistent = true;
        scan.start = start;
        let page = store.scan(scan).await.expect("a page");
        for item in page.items {
            let key: Vec<_> = ["pk", "sk"].iter().map(|name| item.get(name)).collect();
            items.insert(format!("{key:?}"), item);
        }
        start = page.next;
        if start.is_none() {
            return items;
        }
    }
}

pub(crate) fn simple(table: &str) -> TableSchema {
    TableSchema::new(table, "pk", KeyKind::S)
}

/// A table with every feature of a schema.
pub(crate) fn rich() -> TableSchema {
    let key = |name, kind| KeyAttribute::new(name, kind);
    let by_group = IndexSchema::global(
        "by-group",
        key("g", KeyKind::S),
        Some(key("sk", KeyKind::N)),
    )
    .projecting(IndexProjection::Include(vec!["b".to_owned()]));
    let mut by_other = IndexSchema::global(
        "by-other",
        key("pk", KeyKind::S),
        Some(key("o", KeyKind::B)),
    )
    .projecting(IndexProjection::KeysOnly);
    by_other.local = true;
    TableSchema::new("rich", "pk", KeyKind::S)
        .with_sort("sk", KeyKind::N)
        .with_index(by_group)
        .with_index(by_other)
        .with_ttl("expires")
}

pub(crate) fn number(text: &str) -> Value {
    Value::N(text.parse::<Number>().expect("a number"))
}

/// Items with every type and its edge cases.
pub(crate) fn edges() -> Vec<Item> {
    let texts = ["", "a", "ünïcödé 🚐", "\u{0}\u{1f}\"\\", "null"];
    let numbers = [
        "0",
        "-1",
        "1.5",
        "1E-130",
        "-1E-130",
        "9.9999999999999999999999999999999999999E+125",
        "-9.9999999999999999999999999999999999999E+125",
        "12345678901234567890123456789012345678",
        "0.00000000000000000000000000000000000001",
    ];
    let mut values: Vec<Value> = texts.iter().map(|text| Value::from(*text)).collect();
    values.extend(numbers.iter().map(|text| number(text)));
    values.extend([
        Value::B(vec![]),
        Value::B((0..=255).collect()),
        Value::Bool(true),
        Value::Bool(false),
        Value::Null,
        Value::L(vec![]),
        Value::M(Map::new()),
        Value::string_set(["", "x", "y"]).expect("a set"),
        Value::Ns(
            Set::new(
                numbers
                    .iter()
                    .map(|text| text.parse().expect("a number"))
                    .collect(),
            )
            .expect("a set"),
        ),
        Value::Bs(Set::new(vec![vec![], vec![0], vec![255; 100]]).expect("a set")),
        Value::from("x".repeat(200_000)),
    ]);
    let nested = Map::from([
        ("list".to_owned(), Value::L(values[..20].to_vec())),
        ("a.b c#:".to_owned(), Value::M(Map::new())),
    ]);
    values.push(Value::M(nested));
    values
        .into_iter()
        .zip(1..)
        .map(|(value, place): (Value, i64)| {
            Item::new()
                .with("pk", format!("edge-{place}"))
                .with("sk", number("-9.5E-100"))
                .with("g", "group")
                .with("o", Value::B(vec![0, 255]))
                .with("value", value)
        })
        .collect()
}

pub(crate) async fn fill(store: &dyn Store, table: &str, count: i64) {
    for place in 0..count {
        put(store, table, place, "first").await;
    }
}

pub(crate) async fn put(store: &dyn Store, table: &str, place: i64, text: &str) {
    let item = Item::new()
        .with("pk", format!("item-{place}"))
        .with("n", place)
        .with("text", text);
    store.put(Put::new(table, item)).await.expect("a put");
}
