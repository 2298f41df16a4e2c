//! The rows of the table: the work of each contestant, in alternating rounds.

use std::sync::Arc;
use std::time::Instant;

use crate::contestant::Contestant;
use crate::engine_side::EngineSide;
use crate::measure::{Calls, Measured, Round, run};
use crate::raw_side::RawSide;
use crate::sqlite_side::{READERS, SqliteSide};
use crate::stream::Stream;
use crate::table::{Goal, Row};
use crate::workload::{DEVICE_COUNT, Reading, mix};

/// Items written by one transaction.
const ITEMS_PER_TRANSACTION: usize = 3;
const NEWEST: usize = 100;
const RANGE: usize = 10_000;
/// Callers that fill a store.
const LOADERS: usize = 4;

/// The amount of work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) rounds: usize,
    /// Devices with more than 10,000 readings.
    pub(crate) veterans: u32,
    /// Readings of every other device.
    pub(crate) readings_each: u32,
    /// Divides the work of a round.
    pub(crate) divisor: usize,
}

impl Sizes {
    pub(crate) fn full() -> Self {
        Self {
            rounds: 5,
            veterans: 20,
            readings_each: 816,
            divisor: 1,
        }
    }

    pub(crate) fn quick() -> Self {
        Self {
            rounds: 3,
            veterans: 2,
            readings_each: 81,
            divisor: 10,
        }
    }

    fn stream(&self) -> Stream {
        Stream::new(self.veterans, RANGE as u32 + 1 - self.readings_each)
    }

    /// Readings stored before the measurement.
    fn loaded(&self) -> usize {
        let others = (DEVICE_COUNT - self.veterans) * self.readings_each;
        (self.veterans as usize) * RANGE + others as usize
    }
}

/// A contestant with its position in the stream of readings: all store the same ones.
struct Side<C> {
    store: C,
    stream: Arc<Stream>,
    loaded: usize,
}

/// The selected rows: those whose name contains the text.
pub(crate) struct Arena {
    sizes: Sizes,
    only: Option<String>,
    ours: Side<EngineSide>,
    sealed: Side<EngineSide>,
    raw: Side<RawSide>,
    sqlite: Side<SqliteSide>,
    rows: Vec<Row>,
}

/// The work of a row's callers.
#[derive(Debug, Clone, Copy)]
enum Work {
    Load,
    Ingest {
        callers: usize,
        at_once: usize,
        transactions: usize,
    },
    Get {
        decoded: bool,
    },
    Newest {
        decoded: bool,
    },
    Range {
        decoded: bool,
    },
    Mixed,
}

impl Arena {
    pub(crate) fn new(
        sizes: Sizes,
        only: Option<String>,
        ours: EngineSide,
        sealed: EngineSide,
        raw: RawSide,
        sqlite: SqliteSide,
    ) -> Self {
        Self {
            sizes,
            only,
            ours: Side::new(ours, sizes),
            sealed: Side::new(sealed, sizes),
            raw: Side::new(raw, sizes),
            sqlite: Side::new(sqlite, sizes),
            rows: Vec::new(),
        }
    }

    /// Measures every row.
    pub(crate) async fn measure(mut self) -> Vec<Row> {
        self.ours.store.register().await;
        self.sealed.store.register().await;
        self.raw.store.register().await;
        self.sqlite.store.register().await;
        let raw_60 = Goal::PercentOfRaw(60);
        let raw_50 = Goal::PercentOfRaw(50);
        self.row(
            "fill the store, 4 callers, 100 at once, requests built meanwhile",
            "items/s",
            Goal::AheadOfSqlite,
            Work::Load,
        )
        .await;
        self.row(
            "point get, stored form",
            "gets/s",
            raw_50,
            Work::Get { decoded: false },
        )
        .await;
        self.row(
            "point get, decoded",
            "gets/s",
            raw_50,
            Work::Get { decoded: true },
        )
        .await;
        self.row(
            "newest 100, stored form",
            "queries/s",
            raw_50,
            Work::Newest { decoded: false },
        )
        .await;
        self.row(
            "newest 100, decoded",
            "queries/s",
            raw_50,
            Work::Newest { decoded: true },
        )
        .await;
        self.row(
            "range of 10,000, stored form",
            "items/s",
            raw_50,
            Work::Range { decoded: false },
        )
        .await;
        self.row(
            "range of 10,000, decoded",
            "items/s",
            raw_50,
            Work::Range { decoded: true },
        )
        .await;
        for (name, goal, callers, at_once, transactions) in [
            ("ingest, 1 caller", Goal::AheadOfSqlite, 1, 1, 2_000),
            ("ingest, 8 callers", Goal::AheadOfSqlite, 8, 1, 12_000),
            ("ingest, 64 callers", raw_60, 64, 1, 40_000),
            ("ingest, 1 caller, 100 at once", raw_60, 1, 100, 40_000),
            ("ingest, 8 callers, 100 at once", raw_60, 8, 100, 60_000),
        ] {
            let work = Work::Ingest {
                callers,
                at_once,
                transactions,
            };
            self.row(name, "items/s", goal, work).await;
        }
        self.row(
            "8 callers, 80 % gets, 20 % ingest",
            "operations/s",
            Goal::AheadOfSqlite,
            Work::Mixed,
        )
        .await;
        self.rows
    }

    async fn row(&mut self, name: &'static str, unit: &'static str, goal: Goal, work: Work) {
        let is_load = matches!(work, Work::Load);
        if !is_load && self.only.as_ref().is_some_and(|only| !name.contains(only)) {
            return;
        }
        eprintln!("measuring: {name}");
        let mut row = Row {
            name,
            unit,
            goal,
            ours: Measured::default(),
            sealed: Measured::default(),
            raw: Measured::default(),
            sqlite: Measured::default(),
        };
        let rounds = if is_load { 1 } else { self.sizes.rounds };
        for round in 0..rounds {
            let seed = mix(round as u64);
            row.ours.add(self.ours.round(work, self.sizes, seed).await);
            row.sealed
                .add(self.sealed.round(work, self.sizes, seed).await);
            row.raw.add(self.raw.round(work, self.sizes, seed).await);
            row.sqlite
                .add(self.sqlite.round(work, self.sizes, seed).await);
        }
        self.rows.push(row);
    }
}

impl<C: Contestant> Side<C> {
    fn new(store: C, sizes: Sizes) -> Self {
        Self {
            store,
            stream: Arc::new(sizes.stream()),
            loaded: sizes.loaded(),
        }
    }

    async fn round(&self, work: Work, sizes: Sizes, seed: u64) -> Round {
        let store = self.store.clone();
        let share = |count: usize| count / sizes.divisor / READERS;
        let random = |call: usize, caller: usize| mix(seed ^ (call * READERS + caller) as u64);
        match work {
            Work::Load => self.load().await,
            Work::Ingest {
                callers,
                at_once,
                transactions,
            } => {
                let each = (transactions / sizes.divisor / callers / at_once).max(2);
                let calls = (0..callers)
                    .map(|_| (0..each).map(|_| self.requests(at_once)).collect())
                    .collect();
                let weight = at_once * ITEMS_PER_TRANSACTION;
                run(calls, weight, move |_, requests| {
                    let store = store.clone();
                    async move { store.write(requests).await }
                })
                .await
            }
            Work::Get { decoded } => {
                let calls = self.calls(share(200_000), |call, caller| {
                    self.any_reading(random(call, caller))
                });
                run(calls, 1, move |caller, reading| {
                    let store = store.clone();
                    async move { assert!(store.get(caller, reading, decoded).await) }
                })
                .await
            }
            Work::Newest { decoded } => {
                let calls = self.calls(share(16_000), |call, caller| {
                    (random(call, caller) % u64::from(DEVICE_COUNT)) as u32
                });
                let least = NEWEST.min(sizes.readings_each as usize);
                run(calls, 1, move |caller, device| {
                    let store = store.clone();
                    async move {
                        assert!(store.newest(caller, device, NEWEST, decoded).await >= least);
                    }
                })
                .await
            }
            Work::Range { decoded } => {
                let calls = self.calls(share(160).max(2), |call, caller| Reading {
                    device: self.stream.veteran(random(call, caller)),
                    step: 1,
                });
                run(calls, RANGE, move |caller, first| {
                    let store = store.clone();
                    async move {
                        assert_eq!(store.range(caller, first, RANGE, decoded).await, RANGE);
                    }
                })
                .await
            }
            Work::Mixed => {
                let calls = self.calls(share(40_000), |call, caller| {
                    if call % 5 == 4 {
                        Operation::Write(self.requests(1))
                    } else {
                        Operation::Get(self.any_reading(random(call, caller)))
                    }
                });
                run(calls, 1, move |caller, operation| {
                    let store = store.clone();
                    async move {
                        match operation {
                            Operation::Get(reading) => {
                                assert!(store.get(caller, reading, true).await);
                            }
                            Operation::Write(requests) => store.write(requests).await,
                        }
                    }
                })
                .await
            }
        }
    }

    fn calls<T>(&self, each: usize, call: impl Fn(usize, usize) -> T) -> Calls<T> {
        (0..READERS)
            .map(|caller| (0..each).map(|at| call(at, caller)).collect())
            .collect()
    }

    fn requests(&self, count: usize) -> Vec<C::Request> {
        let readings = self.stream.take(count);
        readings
            .iter()
            .map(|reading| self.store.request(*reading))
            .collect()
    }

    /// A reading that the store was filled with.
    fn any_reading(&self, seed: u64) -> Reading {
        let device = (mix(seed) % u64::from(DEVICE_COUNT)) as u32;
        let first = self.stream.first_step(device);
        let steps = RANGE as u32 + 1 - first;
        Reading {
            device,
            step: first + (seed % u64::from(steps)) as u32,
        }
    }

    async fn load(&self) -> Round {
        const AT_ONCE: usize = 100;
        let started = Instant::now();
        let each = self.loaded / LOADERS;
        let loaders: Vec<_> = (0..LOADERS)
            .map(|loader| {
                let (store, stream) = (self.store.clone(), Arc::clone(&self.stream));
                let mut left = if loader == 0 {
                    self.loaded - each * (LOADERS - 1)
                } else {
                    each
                };
                tokio::spawn(async move {
                    let mut latencies = Vec::new();
                    while left > 0 {
                        let readings = stream.take(left.min(AT_ONCE));
                        left -= readings.len();
                        let requests = readings.iter().map(|reading| store.request(*reading));
                        let requests = requests.collect();
                        let started = Instant::now();
                        store.write(requests).await;
                        latencies.push(started.elapsed());
                    }
                    latencies
                })
            })
            .collect();
        let mut latencies = Vec::new();
        for loader in loaders {
            latencies.extend(loader.await.expect("a loader does not panic"));
        }
        Round {
            rate: (self.loaded * ITEMS_PER_TRANSACTION) as f64 / started.elapsed().as_secs_f64(),
            latencies,
        }
    }
}

enum Operation<R> {
    Get(Reading),
    Write(Vec<R>),
}
