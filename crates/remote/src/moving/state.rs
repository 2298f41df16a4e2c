//! The state file of a move, which outlives the process.
//!
//! IMPORTANT: steps that must not be forgotten are recorded before they are taken (a stream that we
//! must disable, a target table that we may write to). Steps that must not be assumed are recorded
//! after they are taken (copied pages, applied changes).

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use homeport_item::Item;
use serde::{Deserialize, Serialize};

use super::MoveError;

/// The version of the file format. Other versions are rejected.
const VERSION: u32 = 1;
/// Maximum file size; a table needs one or two kilobytes.
const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A move's progress and its file.
#[derive(Debug)]
pub(super) struct StateFile {
    path: PathBuf,
    pub(super) state: State,
    /// Held while this process runs the move, because two processes would overwrite each other's
    /// state.
    _lock: File,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    v: u32,
    /// The names of the endpoints, which identify the move.
    pub(super) source: String,
    pub(super) target: String,
    /// Everything was proven equal; only the streams remain to be disabled.
    #[serde(default)]
    pub(super) is_proven: bool,
    pub(super) tables: BTreeMap<String, TableState>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableState {
    pub(super) stage: Stage,
    /// The stream was enabled for the move and must be disabled at its end.
    pub(super) stream_is_ours: bool,
    /// The position for the next read of changes; `None` until the stream exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) position: Option<String>,
    /// The last copied key during copying.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) copied_to: Option<Item>,
    /// The ARN of the table that the items were written to; another table of the same name is not
    /// ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) target_arn: Option<String>,
    pub(super) items_copied: u64,
    pub(super) changes_carried: u64,
}

/// The next step for a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Stage {
    /// The target's items, which are from before the move or from an outdated copy, must be
    /// deleted.
    Emptying,
    Copying,
    /// The copy is complete; changes are applied as they arrive.
    Following,
}

impl TableState {
    pub(super) fn new(stage: Stage) -> Self {
        Self {
            stage,
            stream_is_ours: false,
            position: None,
            copied_to: None,
            target_arn: None,
            items_copied: 0,
            changes_carried: 0,
        }
    }

    /// Restarts the copy: the target must be emptied first.
    pub(super) fn restart_copy(&mut self, position: Option<String>) {
        self.stage = Stage::Emptying;
        self.position = position;
        self.copied_to = None;
        self.items_copied = 0;
    }
}

impl StateFile {
    /// Opens the file of a move between these endpoints, or creates one.
    pub(super) fn open(path: &Path, source: &str, target: &str) -> Result<Self, MoveError> {
        let failed = |error| MoveError::State(path.to_owned(), error);
        let lock = lock(path)?;
        let state = match read(path).map_err(failed)? {
            None => State {
                v: VERSION,
                source: source.to_owned(),
                target: target.to_owned(),
                is_proven: false,
                tables: BTreeMap::new(),
            },
            Some(text) => {
                let state: State = serde_json::from_str(&text)
                    .map_err(|error| failed(io::Error::new(ErrorKind::InvalidData, error)))?;
                if state.v != VERSION {
                    let reason = format!("its version is {} instead of {VERSION}", state.v);
                    return Err(failed(io::Error::new(ErrorKind::InvalidData, reason)));
                }
                state
            }
        };
        if (state.source.as_str(), state.target.as_str()) != (source, target) {
            return Err(MoveError::AnotherMove {
                path: path.to_owned(),
                source_place: state.source,
                target_place: state.target,
            });
        }
        Ok(Self {
            path: path.to_owned(),
            state,
            _lock: lock,
        })
    }

    /// Writes the state durably.
    pub(super) fn save(&self) -> Result<(), MoveError> {
        let text = serde_json::to_vec_pretty(&self.state)
            .map_err(|error| io::Error::new(ErrorKind::InvalidData, error));
        let saved = text.and_then(|text| {
            let unfinished = self.path.with_extension("new");
            let mut file = File::create(&unfinished)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&unfinished, &self.path)?;
            sync_directory_of(&self.path)
        });
        saved.map_err(|error| MoveError::State(self.path.clone(), error))
    }

    /// Deletes the state file.
    pub(super) fn remove(&self) -> Result<(), MoveError> {
        let removed = match fs::remove_file(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed.and_then(|()| sync_directory_of(&self.path)),
        };
        removed.map_err(|error| MoveError::State(self.path.clone(), error))
    }
}

fn lock(path: &Path) -> Result<File, MoveError> {
    let path = path.with_extension("lock");
    let failed = |error| MoveError::State(path.clone(), error);
    let mut options = OpenOptions::new();
    let file = options.create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(MoveError::Running),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

fn read(path: &Path) -> io::Result<Option<String>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        Ok(found) if found.len() > BYTES_MAX => {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "the file is too large",
            ));
        }
        Ok(_) => {}
    }
    fs::read_to_string(path).map(Some)
}

/// A renamed file is durable only after its directory is synced.
fn sync_directory_of(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(directory) if cfg!(unix) => File::open(directory)?.sync_all(),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(directory: &Path, target: &str) -> Result<StateFile, MoveError> {
        StateFile::open(&directory.join("move.json"), "here", target)
    }

    #[test]
    fn saved_state_is_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = open(directory.path(), "there").unwrap();
        let mut table = TableState::new(Stage::Copying);
        table.position = Some("place".to_owned());
        table.copied_to = Some(Item::new().with("id", "a").with("n", 1));
        table.stream_is_ours = true;
        file.state.tables.insert("things".to_owned(), table);
        file.save().unwrap();
        let saved = file.state.clone();
        drop(file);
        let file = open(directory.path(), "there").unwrap();
        assert_eq!(file.state, saved);
        file.remove().unwrap();
        file.remove().unwrap();
        drop(file);
        let file = open(directory.path(), "there").unwrap();
        assert!(file.state.tables.is_empty());
    }

    #[test]
    fn file_of_another_move_is_rejected() {
        let directory = tempfile::tempdir().unwrap();
        open(directory.path(), "there").unwrap().save().unwrap();
        let refused = open(directory.path(), "elsewhere");
        assert!(matches!(refused, Err(MoveError::AnotherMove { .. })));
    }

    #[test]
    fn file_of_other_version_is_rejected_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("move.json");
        for text in [
            "",
            "{",
            r#"{"v":2,"source":"here","target":"there","tables":{}}"#,
        ] {
            fs::write(&path, text).unwrap();
            let refused = open(directory.path(), "there");
            assert!(matches!(refused, Err(MoveError::State(..))), "{text}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn only_one_process_can_move() {
        let directory = tempfile::tempdir().unwrap();
        let first = open(directory.path(), "there").unwrap();
        let second = open(directory.path(), "there");
        assert!(matches!(second, Err(MoveError::Running)));
        drop(first);
        open(directory.path(), "there").unwrap();
    }
}
