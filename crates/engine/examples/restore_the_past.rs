//! A table that changes while a model watches, restored to random seconds of its past, each of which
//! must be the model's state of that second. The source goes on changing meanwhile.
//!
//! Run it with `cargo run --release --example restore_the_past -- 1000000`; the number is that of the
//! items, 100,000 unless given.

use std::sync::Arc;
use std::time::{Duration, Instant};

use homeport_engine::{Clock as _, Engine, ManualClock, NewTable, Options, RestorePoint};
use homeport_item::schema::TableSchema;
use homeport_item::{Item, KeyKind};
use homeport_store::{Delete, Put, Scan, Store, Transaction};

const SECONDS: usize = 60;
const RESTORES: usize = 3;
const HANDED_OVER_AT_ONCE: usize = 1000;
/// Makes an item about as large as a reading.
const NOTE: &str = "0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz";
const START_MS: i64 = 1_800_000_000_000;

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let items: usize = match std::env::args().nth(1) {
        Some(text) => text.parse()?,
        None => 100_000,
    };
    let directory = tempfile::tempdir()?;
    let clock = Arc::new(ManualClock::at_ms(START_MS));
    let options = Options {
        clock: Arc::clone(&clock) as _,
        ..Options::default()
    };
    let engine = Engine::open(directory.path(), options)?;
    engine.create_table(schema("watched")).await?;
    let seed = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)?
        .as_secs();
    println!("{items} items, seed {seed}");
    let mut dice = Dice(seed);

    let started = Instant::now();
    let all: Vec<_> = (0..items).map(|id| (id, Some(0))).collect();
    write(&engine, &all).await?;
    println!("written in {:.1} s", started.elapsed().as_secs_f64());

    // The same changes without and with a history, for its cost.
    let mut model: Vec<Option<u32>> = vec![Some(0); items];
    let mut moments = Vec::new();
    let chosen: Vec<usize> = (0..RESTORES).map(|_| dice.below(SECONDS)).collect();
    for keeps_history in [false, true] {
        engine.compact().await?;
        let bytes_before = engine.metrics().disk_bytes;
        if keeps_history {
            engine.set_history("watched", Some(35)).await?;
        }
        let since_ms = clock.now_ms();
        let mut count = 0;
        let mut took = Duration::ZERO;
        for second in 0..SECONDS {
            let changes = random_changes(&mut dice, items);
            for (id, n) in &changes {
                model[*id] = *n;
            }
            count += changes.len();
            let started = Instant::now();
            write(&engine, &changes).await?;
            took += started.elapsed();
            if keeps_history && chosen.contains(&second) {
                let at_ms = since_ms + i64::try_from(second)? * 1000 + 999;
                moments.push((second, at_ms, model.clone()));
            }
            clock.advance_ms(1000);
        }
        engine.compact().await?;
        let bytes = engine.metrics().disk_bytes.saturating_sub(bytes_before);
        println!(
            "{count} changes {} a history: {:.0} a second, {bytes} bytes more on disk",
            if keeps_history { "with" } else { "without" },
            count as f64 / took.as_secs_f64(),
        );
    }

    let writer = engine.clone();
    let still_changing = tokio::spawn(async move {
        let mut dice = Dice(seed + 1);
        loop {
            let changes: Vec<_> = (0..10).map(|_| (dice.below(items), Some(7))).collect();
            if write(&writer, &changes).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    for (number, (at, at_ms, model)) in moments.iter().enumerate() {
        let name = format!("restored-{number}");
        let started = Instant::now();
        let target = NewTable {
            schema: schema(&name),
            settings: String::new(),
        };
        engine
            .restore_table_to("watched", RestorePoint::At(*at_ms), target)
            .await?;
        while engine.describe_table(&name)?.is_restoring {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let took = started.elapsed().as_secs_f64();
        compare(&engine, &name, model).await?;
        println!("second {at:>2}: restored in {took:.1} s, and as it was");
        engine.delete_table(&name).await?;
    }
    still_changing.abort();
    Ok(())
}

/// A second's worth of changes: one in four is a removal.
fn random_changes(dice: &mut Dice, items: usize) -> Vec<(usize, Option<u32>)> {
    let mut changes = std::collections::BTreeMap::new();
    for _ in 0..items / SECONDS {
        let n = (dice.below(4) > 0).then(|| u32::try_from(dice.below(1_000_000)).unwrap_or(0));
        changes.insert(dice.below(items), n);
    }
    changes.into_iter().collect()
}

fn schema(name: &str) -> TableSchema {
    TableSchema::new(name, "id", KeyKind::N)
}

async fn write(engine: &Engine, changes: &[(usize, Option<u32>)]) -> Result<(), Failure> {
    for chunk in changes.chunks(HANDED_OVER_AT_ONCE) {
        let mut transactions = Vec::with_capacity(chunk.len());
        for (id, n) in chunk {
            let key = Item::new().with("id", i64::try_from(*id)?);
            let action = match n {
                Some(n) => {
                    Put::new("watched", key.with("n", i64::from(*n)).with("note", NOTE)).into()
                }
                None => Delete::new("watched", key).into(),
            };
            transactions.push(Transaction::new(vec![action]));
        }
        for written in engine.transact_each(transactions).await {
            written?;
        }
    }
    Ok(())
}

/// Fails on the first item that is not as the model has it.
async fn compare(engine: &Engine, table: &str, model: &[Option<u32>]) -> Result<(), Failure> {
    let mut seen = 0;
    let mut start = None;
    loop {
        let page = engine.scan(Scan::new(table).starting_after(start)).await?;
        for item in &page.items {
            let (id, n) = (number(item, "id")?, number(item, "n")?);
            let expected = model.get(usize::try_from(id)?).copied().flatten();
            if expected.map(u64::from) != Some(n) {
                return Err(format!("item {id} has {n} and should have {expected:?}").into());
            }
            seen += 1;
        }
        start = page.next;
        if start.is_none() {
            break;
        }
    }
    let expected = model.iter().flatten().count();
    if seen != expected {
        return Err(format!("{seen} items and not {expected}").into());
    }
    Ok(())
}

fn number(item: &Item, name: &str) -> Result<u64, Failure> {
    match item.get(name) {
        Some(homeport_item::Value::N(number)) => Ok(number.to_string().parse()?),
        other => Err(format!("{name} is {other:?}").into()),
    }
}

/// The same numbers for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % bound.max(1)
    }
}
