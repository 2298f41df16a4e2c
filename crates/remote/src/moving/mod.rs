//! Moving house: all tables of one DynamoDB endpoint to another, while the first is in use. Either may be
//! Amazon's own, and either may be Homeport's.
//!
//! Each table is copied whole and then follows the changes of its stream, from a position that was noted
//! before the copy began: carrying a change over twice is the same as once, so the two converge. What is
//! equal is said after comparing, never because the streams have gone quiet.
//!
//! **Invariant:** the source's items are only ever read. All that changes there is that a table without a
//! stream has one while the move lasts.

mod copy;
mod digest;
mod follow;
mod state;
mod tables;
mod verify;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use homeport_store::StoreError;

pub use self::digest::ContentHash;
use self::state::{Stage, StateFile};
pub use self::verify::Verified;
use crate::connect::Remote;

/// How often a table may have to be copied anew in one run.
const ANEW_MAX: usize = 3;

/// How often sums are made again of tables that are equal item by item, to have them equal too.
const SUMS_TRIES_MAX: usize = 2;

/// A move, as far as it has come.
pub struct Move {
    source: Arc<Remote>,
    target: Arc<Remote>,
    file: StateFile,
    /// When each table was followed last, by the clock of the source's connection.
    followed_ms: HashMap<String, i64>,
    options: MoveOptions,
    observer: Box<dyn Fn(&MoveEvent<'_>) + Send + Sync>,
}

/// Which tables of the source are moved. One that a move has begun with belongs to it in any case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MoveTables {
    All,
    /// Those of these that are there; others are nobody's business.
    Known(Vec<String>),
    /// These, which must all be there.
    Named(Vec<String>),
}

/// How a move is done.
#[derive(Debug, Clone)]
pub struct MoveOptions {
    pub tables: MoveTables,
    /// Tables of the target may hold other items, which are deleted.
    pub replace: bool,
}

/// A place to move from or to, and what it is called in the notes of a move.
#[derive(Debug, Clone)]
pub struct MovePlace {
    pub remote: Arc<Remote>,
    pub name: String,
}

/// What happens during a move, for whoever watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MoveEvent<'a> {
    /// How many tables are moved, and how many of the source are left alone.
    Tables {
        moved: usize,
        others: usize,
    },
    /// A table of the source had no stream.
    StreamOn {
        table: &'a str,
    },
    /// A stream that was switched on for the move is off again.
    StreamOff {
        table: &'a str,
    },
    /// Items of the target were deleted, so many so far.
    Emptied {
        table: &'a str,
        items: u64,
    },
    /// Items were copied, so many so far.
    Copied {
        table: &'a str,
        items: u64,
    },
    /// All items were copied.
    CopyEnded {
        table: &'a str,
        items: u64,
    },
    /// Changes between two runs are no longer kept: the table is emptied at the target and copied again.
    CopyBeginsAnew {
        table: &'a str,
    },
    /// Changes were carried over, so many so far; the oldest of the last ones happened this long ago.
    Carried {
        table: &'a str,
        changes: u64,
        lag_ms: i64,
    },
    /// The items of both are read and compared, so many of the source's so far.
    Comparing {
        table: &'a str,
        items: u64,
    },
    /// A table was moved in an earlier run and is gone from the source. The target's stays.
    TableGone {
        table: &'a str,
    },
    Compared(&'a Verified),
}

/// Which of the two places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Source,
    Target,
}

impl std::fmt::Display for Side {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Source => "source",
            Self::Target => "target",
        })
    }
}

/// Why a move did not go on. All but `Different` leave it so that it can be started again.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    #[error("table {table:?} of the {side}")]
    Store {
        side: Side,
        table: String,
        #[source]
        error: StoreError,
    },
    #[error("the notes of the move in {}", .0.display())]
    State(PathBuf, #[source] std::io::Error),
    #[error(
        "{} belongs to a move from {source_place} to {target_place}: finish or abandon that one first",
        path.display()
    )]
    AnotherMove {
        path: PathBuf,
        source_place: String,
        target_place: String,
    },
    #[error("another process is moving the same tables")]
    Running,
    #[error("the source has no tables to move")]
    Nothing,
    #[error("the source has no table {0:?}")]
    NoTable(String),
    #[error(
        "these tables of the target hold items that are not from this move: {}; nothing was changed",
        .0.join(", ")
    )]
    Foreign(Vec<String>),
    #[error(
        "table {0:?} of the source changes faster than its changes can be carried over, or the clocks of the two machines differ by more than a few seconds"
    )]
    NotLevel(String),
    #[error("the changes of table {0:?} were lost again while it was copied")]
    Outrun(String),
    #[error(
        "table {0:?} of the source is still being written to: stop whatever writes, then finish"
    )]
    StillWritten(String),
    #[error("{} of {} tables differ: {}", .0.len(), .1, .0.join(", "))]
    Different(Vec<String>, usize),
}

impl std::fmt::Debug for Move {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Move")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

impl Move {
    /// Begins a move, or goes on with the one that `notes` tells of.
    ///
    /// # Errors
    /// When the notes cannot be read, are of another move, or another process is at work with them.
    pub fn open(
        source: MovePlace,
        target: MovePlace,
        notes: &Path,
        options: MoveOptions,
        observer: Box<dyn Fn(&MoveEvent<'_>) + Send + Sync>,
    ) -> Result<Self, MoveError> {
        Ok(Self {
            file: StateFile::open(notes, &source.name, &target.name)?,
            source: source.remote,
            target: target.remote,
            followed_ms: HashMap::new(),
            options,
            observer,
        })
    }

    /// Copies what is not copied yet, carries changes over until the target is level, and compares. What is
    /// in motion may be found different from moment to moment; see [`Verified`].
    ///
    /// # Errors
    /// When either place fails, or tables differ in what nobody is writing.
    pub async fn run(&mut self) -> Result<Vec<Verified>, MoveError> {
        if self.file.state.is_proven {
            self.end().await?;
            return Ok(Vec::new());
        }
        let tables = self.bring_all().await?;
        let mut all = Vec::with_capacity(tables.len());
        for table in &tables {
            all.push(self.verify(table).await?);
        }
        all_equal(&all)?;
        Ok(all)
    }

    /// As [`Move::run`], for a source that nobody writes to any more: proves that both places are equal, then
    /// takes back what was changed at the source and forgets the move.
    ///
    /// # Errors
    /// As for [`Move::run`], and when something was written meanwhile.
    pub async fn finish(&mut self) -> Result<Vec<Verified>, MoveError> {
        if self.file.state.is_proven {
            self.end().await?;
            return Ok(Vec::new());
        }
        let tables = self.bring_all().await?;
        let mut all = Vec::with_capacity(tables.len());
        for table in &tables {
            let mut verified = self.verify(table).await?;
            for _ in 0..SUMS_TRIES_MAX {
                let is_quiet = verified.writes_seen == 0 && verified.in_motion == 0;
                let is_settled = verified.source_hash == verified.target_hash;
                if is_settled || !is_quiet || !verified.different.is_empty() {
                    break;
                }
                // Items expired between reading the one and reading the other.
                verified = self.verify(table).await?;
            }
            if verified.in_motion > 0 || verified.writes_seen > 0 {
                return Err(MoveError::StillWritten(table.clone()));
            }
            all.push(verified);
        }
        all_equal(&all)?;
        // What was compared first may have been written to since.
        for table in &tables {
            if self.bring(table).await?.by_requests > 0 {
                return Err(MoveError::StillWritten(table.clone()));
            }
        }
        self.file.state.is_proven = true;
        self.file.save()?;
        self.end().await?;
        Ok(all)
    }

    /// Gives a move up: takes back what was changed at the source and forgets the move. What was copied stays
    /// at the target.
    ///
    /// # Errors
    /// When the source or the notes cannot be changed.
    pub async fn abandon(&mut self) -> Result<(), MoveError> {
        self.end().await
    }

    async fn end(&mut self) -> Result<(), MoveError> {
        self.switch_streams_off().await?;
        self.file.remove()
    }

    /// Brings every table to where it follows the source, and is level.
    async fn bring_all(&mut self) -> Result<Vec<String>, MoveError> {
        let tables = self.tables_to_move().await?;
        // All of them first: what cannot be made at the target is told before hours of copying.
        self.prepare(&tables).await?;
        for table in &tables {
            self.bring(table).await?;
        }
        // Copying the others may have taken its time.
        for table in &tables {
            if !self.was_followed_just_now(table) {
                self.bring(table).await?;
            }
        }
        Ok(tables)
    }

    /// Does what is next for a table until it is level with the source.
    async fn bring(&mut self, table: &str) -> Result<follow::Carried, MoveError> {
        for _ in 0..=ANEW_MAX {
            match self.stage(table) {
                Stage::Emptying => self.empty(table).await?,
                Stage::Copying => {}
                Stage::Following => {
                    if let Some(carried) = self.catch_up(table, &HashSet::new()).await? {
                        return Ok(carried);
                    }
                    continue;
                }
            }
            self.copy(table).await?;
            if let Some(carried) = self.catch_up(table, &HashSet::new()).await? {
                return Ok(carried);
            }
        }
        Err(MoveError::Outrun(table.to_owned()))
    }

    fn stage(&self, table: &str) -> Stage {
        let tables = &self.file.state.tables;
        tables
            .get(table)
            .map_or(Stage::Copying, |table| table.stage)
    }

    fn tell(&self, event: &MoveEvent<'_>) {
        (self.observer)(event);
    }
}

/// What was in motion is judged by `finish`; what differs without being written is wrong in any run.
fn all_equal(all: &[Verified]) -> Result<(), MoveError> {
    let different: Vec<String> = all
        .iter()
        .filter(|table| !table.different.is_empty())
        .map(|table| {
            format!(
                "{} ({} items, such as {})",
                table.table,
                table.different.len(),
                table.different[0]
            )
        })
        .collect();
    if different.is_empty() {
        Ok(())
    } else {
        Err(MoveError::Different(different, all.len()))
    }
}

fn at(side: Side, table: &str) -> impl FnOnce(StoreError) -> MoveError + '_ {
    move |error| MoveError::Store {
        side,
        table: table.to_owned(),
        error,
    }
}
