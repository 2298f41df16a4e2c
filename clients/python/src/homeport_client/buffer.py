"""Readings on disk until the server has them.

SQLite keeps them: a reading is in the buffer when `add` returns, also after a power cut, and a write that was cut off in
the middle is as if it had never begun.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import os
import sqlite3
import threading
import time
from typing import Iterable, List, Mapping, Tuple, Union

from .reading import Reading

READINGS_MAX_DEFAULT = 100_000
DEAD_LETTERS_MAX = 10_000
_VERSION = 1
_BUSY_SECS = 30.0

_TABLES = """
CREATE TABLE IF NOT EXISTS readings (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    batch_id TEXT NOT NULL UNIQUE,
    body TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS dead_letters (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    batch_id TEXT NOT NULL,
    body TEXT NOT NULL,
    code TEXT NOT NULL,
    reason TEXT NOT NULL,
    rejected_at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"""


class BufferFull(Exception):
    """The buffer holds as many readings as it may; the new one was not added."""


class WhenFull(enum.Enum):
    """What happens to a new reading when there is no room."""

    REFUSE = "refuse"
    """`add` raises `BufferFull`: the caller decides, and nothing is lost in silence."""

    DROP_OLDEST = "drop_oldest"
    """The oldest reading makes room. `Buffer.dropped` says how many did."""


@dataclasses.dataclass(frozen=True)
class DeadLetter:
    """A reading that the server will never take, and why."""

    batch_id: str
    body: str
    code: str
    reason: str
    rejected_at: float


class Buffer:
    """A queue of readings in one file. Several threads may use it; one process at a time should."""

    def __init__(
        self,
        path: Union[str, "os.PathLike[str]"],
        readings_max: int = READINGS_MAX_DEFAULT,
        when_full: WhenFull = WhenFull.REFUSE,
    ) -> None:
        if readings_max < 1:
            raise ValueError("readings_max must be at least 1")
        self._readings_max = readings_max
        self._when_full = when_full
        self._lock = threading.Lock()
        self._db = sqlite3.connect(os.fspath(path), timeout=_BUSY_SECS, isolation_level=None, check_same_thread=False)
        # A rollback journal with EXTRA syncs the file, the journal and the directory: a commit is on disk when it returns.
        self._db.execute("PRAGMA journal_mode = DELETE")
        self._db.execute("PRAGMA synchronous = EXTRA")
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version > _VERSION:
            self._db.close()
            raise ValueError(f"{path} was written by a newer version of this package")
        self._db.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {_VERSION}; COMMIT;")

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def __enter__(self) -> "Buffer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        with self._lock:
            return self._count("readings")

    @property
    def dropped(self) -> int:
        """Readings that made room for newer ones, ever."""
        with self._lock:
            row = self._db.execute("SELECT value FROM counters WHERE name = 'dropped'").fetchone()
            return 0 if row is None else int(row[0])

    def add(self, reading: Reading) -> None:
        """Keeps a reading; it is on disk when this returns. One that is already there is not added again."""
        body = json.dumps(reading.to_json(), separators=(",", ":"), allow_nan=False)
        with self._lock, _transaction(self._db):
            known = self._db.execute("SELECT 1 FROM readings WHERE batch_id = ?", (reading.batch_id,)).fetchone()
            if known is not None:
                return
            excess = self._count("readings") + 1 - self._readings_max
            if excess > 0:
                if self._when_full is WhenFull.REFUSE:
                    raise BufferFull(f"{self._readings_max} readings wait for the server")
                self._drop_oldest(excess)
            self._db.execute("INSERT INTO readings (batch_id, body) VALUES (?, ?)", (reading.batch_id, body))

    def oldest(self, count: int) -> List[Tuple[str, str]]:
        """Ids and JSON bodies, the oldest first."""
        with self._lock:
            query = "SELECT batch_id, body FROM readings ORDER BY position LIMIT ?"
            return [(str(batch_id), str(body)) for batch_id, body in self._db.execute(query, (count,))]

    def settle(self, delivered: Iterable[str], rejected: Mapping[str, Tuple[str, str]]) -> None:
        """Drops what the server has, and moves what it will never take to the dead letters, in one step."""
        with self._lock, _transaction(self._db):
            self._db.executemany("DELETE FROM readings WHERE batch_id = ?", [(batch_id,) for batch_id in delivered])
            for batch_id, (code, reason) in rejected.items():
                self._db.execute(
                    "INSERT INTO dead_letters (batch_id, body, code, reason, rejected_at) "
                    "SELECT batch_id, body, ?, ?, ? FROM readings WHERE batch_id = ?",
                    (code, reason, time.time(), batch_id),
                )
                self._db.execute("DELETE FROM readings WHERE batch_id = ?", (batch_id,))
            self._db.execute(
                "DELETE FROM dead_letters WHERE position <= (SELECT MAX(position) FROM dead_letters) - ?",
                (DEAD_LETTERS_MAX,),
            )

    def dead_letters(self) -> List[DeadLetter]:
        """What was rejected, the oldest first; the newest 10,000 are kept."""
        with self._lock:
            query = "SELECT batch_id, body, code, reason, rejected_at FROM dead_letters ORDER BY position"
            return [DeadLetter(*row) for row in self._db.execute(query)]

    def clear_dead_letters(self) -> None:
        with self._lock, _transaction(self._db):
            self._db.execute("DELETE FROM dead_letters")

    def _count(self, table: str) -> int:
        return int(self._db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])

    def _drop_oldest(self, count: int) -> None:
        self._db.execute(
            "DELETE FROM readings WHERE position IN (SELECT position FROM readings ORDER BY position LIMIT ?)", (count,)
        )
        self._db.execute(
            "INSERT INTO counters (name, value) VALUES ('dropped', ?) "
            "ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
            (count,),
        )


class _transaction:
    """All or nothing, begun as a writer, so that two processes cannot deadlock half way."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, *_: object) -> None:
        self._db.execute("COMMIT" if kind is None else "ROLLBACK")
