//! Moves all tables of one DynamoDB endpoint to another while the source is in use. Either endpoint
//! may be Amazon DynamoDB or Homeport.
//!
//! Each table is copied completely and then follows the changes of its stream, from a position
//! recorded before the copy started. Applying a change twice is harmless, so the two converge.
//! Tables are reported equal only after a comparison, never because the streams are quiet.
//!
//! **Invariant:** the source's items are only read. The only change there is that a table without a
//! stream has one during the move.

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
pub use self::verify::TableComparison;
use crate::connect::Remote;

/// Maximum number of times a table is copied again in one run.
const RECOPIES_MAX: usize = 3;

/// Maximum number of times the digests of tables with equal items are recomputed until they match.
const DIGEST_ATTEMPTS_MAX: usize = 2;

/// A move in progress.
pub struct Move {
    source: Arc<Remote>,
    target: Arc<Remote>,
    file: StateFile,
    /// The time each table was followed last, by the clock of the source's connection.
    followed_ms: HashMap<String, i64>,
    options: MoveOptions,
    observer: Box<dyn Fn(&MoveEvent<'_>) + Send + Sync>,
}

/// The tables of the source to move. Tables with which the move has started are always included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MoveTables {
    All,
    /// The listed tables that exist; other tables are ignored.
    Known(Vec<String>),
    /// The listed tables, which must all exist.
    Named(Vec<String>),
}

/// The options of a move.
#[derive(Debug, Clone)]
pub struct MoveOptions {
    pub tables: MoveTables,
    /// Deletes other items in the tables of the target.
    pub replace: bool,
}

/// The source or target of a move, and its name in the state file.
#[derive(Debug, Clone)]
pub struct MoveEndpoint {
    pub remote: Arc<Remote>,
    pub name: String,
}

/// Progress of a move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MoveEvent<'a> {
    /// The number of tables that are moved, and of tables that are not.
    Tables {
        moved: usize,
        others: usize,
    },
    /// A stream was enabled on a source table that had none.
    StreamOn {
        table: &'a str,
    },
    /// A stream that was enabled for the move was disabled.
    StreamOff {
        table: &'a str,
    },
    /// Items of the target were deleted; the total so far.
    Emptied {
        table: &'a str,
        items: u64,
    },
    /// Items were copied; the total so far.
    Copied {
        table: &'a str,
        items: u64,
    },
    /// All items were copied.
    CopyEnded {
        table: &'a str,
        items: u64,
    },
    /// Changes between two runs have expired: the table is emptied at the target and copied again.
    CopyRestarted {
        table: &'a str,
    },
    /// Changes were applied: the total so far, and the age of the oldest one in the last page.
    Carried {
        table: &'a str,
        changes: u64,
        lag_ms: i64,
    },
    /// The items of both tables are being compared: the number of source items so far.
    Comparing {
        table: &'a str,
        items: u64,
    },
    /// A table that an earlier run moved is missing at the source. The target's table stays.
    TableGone {
        table: &'a str,
    },
    Compared(&'a TableComparison),
}

/// One of the two endpoints.
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

/// Why a move stopped. After every error except `Different` it can be started again.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    #[error("table {table:?} of the {side}")]
    Store {
        side: Side,
        table: String,
        #[source]
        error: Box<StoreError>,
    },
    #[error("the state file of the move in {}", .0.display())]
    State(PathBuf, #[source] std::io::Error),
    #[error(
        "{} belongs to a move from {source_place} to {target_place}: finish or abandon that move first",
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
        "these tables of the target contain items that are not from this move: {}; nothing was changed",
        .0.join(", ")
    )]
    Foreign(Vec<String>),
    #[error(
        "table {0:?} of the source changes faster than its changes can be applied, or the clocks of the two machines differ by more than a few seconds"
    )]
    NotLevel(String),
    #[error("the changes of table {0:?} expired again while it was being copied")]
    Outrun(String),
    #[error("table {0:?} of the source is still being written to; stop all writers, then finish")]
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
    /// Starts a move, or resumes the one in the state file `notes`.
    ///
    /// # Errors
    /// When the state file is unreadable, belongs to another move, or is in use by another process.
    pub fn open(
        source: MoveEndpoint,
        target: MoveEndpoint,
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

    /// Copies what is missing, applies changes until the target is level, and compares. Items that
    /// are being written may differ temporarily; see [`TableComparison`].
    ///
    /// # Errors
    /// When either endpoint fails, or tables differ in what nobody is writing.
    pub async fn run(&mut self) -> Result<Vec<TableComparison>, MoveError> {
        let Some(tables) = self.advance_unless_proven().await? else {
            return Ok(Vec::new());
        };
        let mut all = Vec::with_capacity(tables.len());
        for table in &tables {
            all.push(self.verify(table).await?);
        }
        all_equal(&all)?;
        Ok(all)
    }

    /// Like [`Move::run`], for a source without writers: proves that both endpoints are equal, then
    /// reverts the changes at the source and deletes the state file.
    ///
    /// # Errors
    /// As for [`Move::run`], and when something was written meanwhile.
    pub async fn finish(&mut self) -> Result<Vec<TableComparison>, MoveError> {
        let Some(tables) = self.advance_unless_proven().await? else {
            return Ok(Vec::new());
        };
        let mut all = Vec::with_capacity(tables.len());
        for table in &tables {
            let mut verified = self.verify(table).await?;
            for _ in 0..DIGEST_ATTEMPTS_MAX {
                let is_quiet = verified.writes_seen == 0 && verified.in_motion == 0;
                let is_settled = verified.source_hash == verified.target_hash;
                if is_settled || !is_quiet || !verified.different.is_empty() {
                    break;
                }
                // Items expired between the two reads.
                verified = self.verify(table).await?;
            }
            if verified.in_motion > 0 || verified.writes_seen > 0 {
                return Err(MoveError::StillWritten(table.clone()));
            }
            all.push(verified);
        }
        all_equal(&all)?;
        // Tables that were compared first may have been written to since.
        for table in &tables {
            if self.advance(table).await?.by_requests > 0 {
                return Err(MoveError::StillWritten(table.clone()));
            }
        }
        self.file.state.is_proven = true;
        self.file.save()?;
        self.end().await?;
        Ok(all)
    }

    /// Abandons a move: reverts the changes at the source and deletes the state file. The copies
    /// stay at the target.
    ///
    /// # Errors
    /// When the source or the state file cannot be changed.
    pub async fn abandon(&mut self) -> Result<(), MoveError> {
        self.end().await
    }

    async fn end(&mut self) -> Result<(), MoveError> {
        self.switch_streams_off().await?;
        self.file.remove()
    }

    /// Advances every table; or, if an earlier run has proven that both endpoints are equal, ends the move.
    async fn advance_unless_proven(&mut self) -> Result<Option<Vec<String>>, MoveError> {
        if self.file.state.is_proven {
            self.end().await?;
            return Ok(None);
        }
        self.advance_all().await.map(Some)
    }

    /// Advances every table until it follows the source and is level.
    async fn advance_all(&mut self) -> Result<Vec<String>, MoveError> {
        let tables = self.tables_to_move().await?;
        // All tables first, so that a table that the target cannot create fails before hours of
        // copying.
        self.prepare(&tables).await?;
        for table in &tables {
            self.advance(table).await?;
        }
        // Copying the others may have taken long.
        for table in &tables {
            if !self.was_followed_just_now(table) {
                self.advance(table).await?;
            }
        }
        Ok(tables)
    }

    /// Runs the next steps of a table until it is level with the source.
    async fn advance(&mut self, table: &str) -> Result<follow::AppliedChanges, MoveError> {
        for _ in 0..=RECOPIES_MAX {
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

    fn report(&self, event: &MoveEvent<'_>) {
        (self.observer)(event);
    }
}

/// Items that were being written are checked by `finish`; other differences are always errors.
fn all_equal(all: &[TableComparison]) -> Result<(), MoveError> {
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
        error: Box::new(error),
    }
}
