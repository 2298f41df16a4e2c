//! Streams and shards: their list, their contents, and their retention.

use std::sync::Arc;

use homeport_engine::{
    Change, Engine, ManualClock, Options, Shard, ShardPosition, Stream, StreamError,
};
use homeport_item::schema::{StreamView, TableSchema};
use homeport_item::{Item, KeyKind};
use homeport_store::{Put, Store};

const HOUR_MS: i64 = 60 * 60 * 1000;

struct World {
    engine: Option<Engine>,
    clock: Arc<ManualClock>,
    directory: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            engine: None,
            clock: Arc::new(ManualClock::at_ms(1_800_000_000_000)),
            directory: tempfile::tempdir().expect("a directory"),
        };
        world.reopen();
        world
    }

    fn reopen(&mut self) {
        self.engine = None;
        let options = Options {
            clock: Arc::clone(&self.clock) as _,
            background_sweep: false,
            ..Options::default()
        };
        self.engine = Some(Engine::open(self.directory.path(), options).expect("opens"));
    }

    fn engine(&self) -> &Engine {
        self.engine.as_ref().expect("open")
    }

    async fn with_stream(view: StreamView) -> Self {
        let world = Self::new();
        let table = TableSchema::new("things", "id", KeyKind::S).with_stream(view);
        world.engine().create_table(table).await.expect("a table");
        world
    }

    async fn put(&self, id: &str, n: usize) {
        let n = i64::try_from(n).expect("small");
        let item = Item::new().with("id", id).with("n", n);
        let put = Put::new("things", item);
        self.engine().put(put).await.expect("a put");
    }

    fn stream(&self) -> Stream {
        let mut streams = self.engine().streams();
        assert_eq!(streams.len(), 1, "{streams:?}");
        streams.remove(0)
    }

    fn read(&self, shard: &Shard, position: ShardPosition) -> Result<Vec<Change>, StreamError> {
        let stream = self.stream().id;
        let page = self.engine().read_shard(stream, shard.id, position, 1000)?;
        Ok(page.changes)
    }

    /// All changes of a stream, shard by shard.
    fn read_all(&self, stream: &Stream) -> Vec<i64> {
        let mut read = Vec::new();
        for shard in &stream.shards {
            let mut position = ShardPosition::Oldest;
            loop {
                let page = self.engine().read_shard(stream.id, shard.id, position, 7);
                let page = page.expect("a page");
                let is_last = page.changes.is_empty();
                read.extend(page.changes.iter().map(number));
                match page.next {
                    Some(next) if !is_last => position = ShardPosition::At(next),
                    _ => break,
                }
            }
        }
        read
    }
}

fn number(change: &Change) -> i64 {
    let image = change.new.as_ref().expect("an image");
    let text = serde_json::to_value(image.get("n").expect("a number")).expect("JSON");
    text["N"].as_str().expect("digits").parse().expect("whole")
}

#[tokio::test]
async fn disabled_stream_stays_readable_for_a_day() {
    let mut world = World::with_stream(StreamView::NewImage).await;
    for n in 0..20 {
        world.put("a", n).await;
    }
    let set = world.engine().set_stream("things", None);
    set.await.expect("off");
    world.put("a", 99).await;
    world.reopen();
    let stream = world.stream();
    assert!(!stream.is_enabled);
    assert_eq!(world.read_all(&stream), (0..20).collect::<Vec<_>>());
    let shard = stream.shards[0];
    let last = shard.end.expect("closed") - 1;
    let at_end = ShardPosition::At(last + 1);
    let page = world.engine().read_shard(stream.id, shard.id, at_end, 10);
    assert_eq!(page.expect("a page").next, None);
    world.clock.advance_ms(24 * HOUR_MS);
    world.engine().sweep().await.expect("a sweep");
    assert_eq!(world.engine().streams().len(), 1);
    world.clock.advance_ms(1);
    world.engine().sweep().await.expect("a sweep");
    assert_eq!(world.engine().streams(), []);
    world.reopen();
    assert_eq!(world.engine().streams(), []);
}

#[tokio::test]
async fn stream_of_a_deleted_table_stays_readable() {
    let mut world = World::with_stream(StreamView::NewImage).await;
    world.put("a", 1).await;
    let delete = world.engine().delete_table("things");
    delete.await.expect("deleted");
    world.reopen();
    let stream = world.stream();
    assert!(!stream.is_enabled);
    assert_eq!(world.read_all(&stream), [1]);
}

#[tokio::test]
async fn each_enabling_creates_a_new_stream() {
    let world = World::with_stream(StreamView::NewImage).await;
    world.put("a", 1).await;
    for view in [None, Some(StreamView::NewImage)] {
        let set = world.engine().set_stream("things", view);
        set.await.expect("a stream");
    }
    world.put("a", 2).await;
    let streams = world.engine().streams();
    let ids: Vec<_> = streams.iter().map(|stream| stream.id).collect();
    assert_eq!(ids.len(), 2);
    // The clock stands still, but the labels must differ.
    assert_ne!(ids[0].enabled_at_ms, ids[1].enabled_at_ms);
    let read: Vec<_> = streams.iter().map(|one| world.read_all(one)).collect();
    assert_eq!(read, [[1], [2]]);
    let described = world.engine().describe_table("things").expect("there");
    assert_eq!(described.stream_at_ms, Some(ids[1].enabled_at_ms));
}

#[tokio::test]
async fn old_shard_is_followed_by_its_child() {
    let mut world = World::with_stream(StreamView::NewImage).await;
    for round in 0..3 {
        for n in 0..5 {
            world.put("a", round * 5 + n).await;
        }
        world.clock.advance_ms(4 * HOUR_MS);
        world.engine().sweep().await.expect("a sweep");
    }
    // No changes since then, so no further shard.
    world.clock.advance_ms(4 * HOUR_MS);
    world.engine().sweep().await.expect("a sweep");
    world.reopen();
    let stream = world.stream();
    assert_eq!(stream.shards.len(), 4);
    for pair in stream.shards.windows(2) {
        assert_eq!(pair[1].parent, Some(pair[0].id));
        assert_eq!(pair[0].end, Some(pair[1].id.first));
    }
    assert_eq!(world.read_all(&stream), (0..15).collect::<Vec<_>>());
    // The first shard was closed 24 hours ago when it disappears.
    world.clock.advance_ms(12 * HOUR_MS + 1);
    world.engine().sweep().await.expect("a sweep");
    let stream = world.stream();
    assert_eq!(stream.shards.len(), 3);
    assert_eq!(stream.shards[0].parent.map(|id| id.first), Some(1));
}

#[tokio::test]
async fn old_changes_are_unreadable_even_before_sweeping() {
    let world = World::with_stream(StreamView::NewImage).await;
    world.put("a", 1).await;
    world.put("a", 2).await;
    let shard = world.stream().shards[0];
    world.clock.advance_ms(24 * HOUR_MS + 1);
    world.engine().confirm_time().await.expect("confirmed");
    world.put("a", 3).await;
    for swept in [false, true] {
        if swept {
            world.engine().sweep().await.expect("a sweep");
        }
        let shard = *world.stream().shards.first().expect("a shard");
        let from_first = world.read(&shard, ShardPosition::At(shard.id.first));
        assert_eq!(from_first, Err(StreamError::Trimmed), "{swept}");
        let oldest = world.read(&shard, ShardPosition::Oldest).expect("the rest");
        let oldest: Vec<_> = oldest.iter().map(number).collect();
        assert_eq!(oldest, [3], "{swept}");
    }
    let third = world.read(&shard, ShardPosition::At(shard.id.first + 2));
    assert_eq!(third.expect("kept").len(), 1);
}

#[tokio::test]
async fn page_ends_at_one_megabyte() {
    let world = World::with_stream(StreamView::NewImage).await;
    for n in 0..6_i64 {
        let item = Item::new()
            .with("id", n.to_string())
            .with("n", n)
            .with("x", "x".repeat(300_000));
        let put = world.engine().put(Put::new("things", item));
        put.await.expect("a put");
    }
    let stream = world.stream();
    let (shard, oldest) = (stream.shards[0].id, ShardPosition::Oldest);
    let page = world.engine().read_shard(stream.id, shard, oldest, 1000);
    let page = page.expect("a page");
    assert_eq!(page.changes.len(), 4);
    let next = ShardPosition::At(page.next.expect("more"));
    let page = world.engine().read_shard(stream.id, shard, next, 1000);
    assert_eq!(page.expect("a page").changes.len(), 2);
}

#[tokio::test]
async fn reader_of_an_idle_stream_is_never_late() {
    let world = World::with_stream(StreamView::NewImage).await;
    world.put("a", 1).await;
    let stream = world.stream();
    let shard = stream.shards[0].id;
    let read = |position| world.engine().read_shard(stream.id, shard, position, 10);
    let mut next = read(ShardPosition::Oldest).expect("a page").next;
    for _ in 0..3 {
        world.clock.advance_ms(24 * HOUR_MS);
        let page = read(ShardPosition::At(next.expect("open"))).expect("in time");
        assert!(page.changes.is_empty());
        next = page.next;
    }
}
