"""A durable queue of readings that the server has not acknowledged yet.

Readings are in SQLite. When `add` returns, the reading survives a power cut. An interrupted write is rolled back.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import json
import logging
import os
import sqlite3
import threading
import time
from typing import Iterable, Iterator, List, Mapping, NamedTuple, Tuple, Union

from .reading import Reading

READINGS_MAX_DEFAULT = 100_000
DEAD_LETTERS_MAX = 10_000
_VERSION = 1
_BUSY_SECS = 30.0

_log = logging.getLogger("homeport_client")

_TABLES = (
    """
    CREATE TABLE IF NOT EXISTS readings (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        batch_id TEXT NOT NULL UNIQUE,
        body TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS dead_letters (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        batch_id TEXT NOT NULL,
        body TEXT NOT NULL,
        code TEXT NOT NULL,
        reason TEXT NOT NULL,
        rejected_at REAL NOT NULL
    )
    """,
    "CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL)",
)


class BufferFull(Exception):
    """The buffer has reached its limit; the new reading was not added."""


class WhenFull(enum.Enum):
    """What `add` does when the buffer is full."""

    REFUSE = "refuse"
    """`add` raises `BufferFull`, so no reading is lost silently."""

    DROP_OLDEST = "drop_oldest"
    """The oldest reading is dropped. `Buffer.dropped` counts dropped readings."""


@dataclasses.dataclass(frozen=True)
class DeadLetter:
    """A reading that the server rejected, with code and reason."""

    batch_id: str
    body: str
    code: str
    reason: str
    rejected_at: float


class Waiting(NamedTuple):
    """A reading in the buffer. Positions are never reused."""

    position: int
    batch_id: str
    body: str


class Buffer:
    """A queue of readings in one file. Several threads may use it, and several processes with a `Buffer` each.

    Every call may raise `sqlite3.Error`, for example when the disk is full or another process locks the file for long. It is then
    safe to repeat the call: each call is atomic and idempotent.
    """

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
        try:
            self._open(path)
        except BaseException:
            self._db.close()
            raise

    def _open(self, path: Union[str, "os.PathLike[str]"]) -> None:
        # A rollback journal with EXTRA syncs the file, the journal and the directory: a commit is on disk when it returns.
        self._db.execute("PRAGMA journal_mode = DELETE")
        self._db.execute("PRAGMA synchronous = EXTRA")
        with self._writing():
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            if version > _VERSION:
                raise ValueError(f"{path} was written by a newer version of this package")
            for table in _TABLES:
                self._db.execute(table)
            self._db.execute(f"PRAGMA user_version = {_VERSION}")

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def __enter__(self) -> "Buffer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        with self._reading():
            return self._count("readings")

    @property
    def dropped(self) -> int:
        """The number of readings dropped so far to make room for newer ones."""
        return self._counted("dropped")

    @property
    def dead_letters_dropped(self) -> int:
        """The number of dead letters dropped so far to make room for newer ones."""
        return self._counted("dead_letters_dropped")

    def add(self, reading: Reading) -> None:
        """Adds a reading; it is on disk when this returns. Adding the same reading again has no effect.

        Raises `ValueError` if a different reading has the same id, and `BufferFull` if the buffer is full.
        """
        body = json.dumps(reading.to_json(), separators=(",", ":"), allow_nan=False)
        with self._writing():
            existing = self._db.execute("SELECT body FROM readings WHERE batch_id = ?", (reading.batch_id,)).fetchone()
            if existing is not None:
                if json.loads(existing[0]) != json.loads(body):
                    raise ValueError(f"another reading has the id {reading.batch_id}")
                return
            excess = self._count("readings") + 1 - self._readings_max
            if excess > 0:
                if self._when_full is WhenFull.REFUSE:
                    raise BufferFull(f"the buffer is full with {self._readings_max} readings")
                self._drop_oldest("readings", excess, "dropped")
            self._db.execute("INSERT INTO readings (batch_id, body) VALUES (?, ?)", (reading.batch_id, body))

    def oldest(self, count: int, after: int = 0) -> List[Waiting]:
        """Readings after a position, oldest first."""
        return self._waiting("SELECT position, batch_id, body FROM readings WHERE position > ? ORDER BY position LIMIT ?", after, count)

    def newest(self, count: int) -> List[Waiting]:
        """The most recently added readings, newest first."""
        return self._waiting("SELECT position, batch_id, body FROM readings ORDER BY position DESC LIMIT ?", count)

    def settle(self, delivered: Iterable[Waiting], rejected: Mapping[Waiting, Tuple[str, str]]) -> None:
        """Atomically deletes delivered readings and moves rejected ones to the dead letters, with code and reason."""
        with self._writing():
            self._db.executemany("DELETE FROM readings WHERE position = ?", [(reading.position,) for reading in delivered])
            for reading, (code, reason) in rejected.items():
                # Does nothing if another process has settled the reading already.
                self._db.execute(
                    "INSERT INTO dead_letters (batch_id, body, code, reason, rejected_at) "
                    "SELECT batch_id, body, ?, ?, ? FROM readings WHERE position = ?",
                    (code, reason, time.time(), reading.position),
                )
                self._db.execute("DELETE FROM readings WHERE position = ?", (reading.position,))
            excess = self._count("dead_letters") - DEAD_LETTERS_MAX if rejected else 0
            if excess > 0:
                self._drop_oldest("dead_letters", excess, "dead_letters_dropped")

    def dead_letters(self) -> List[DeadLetter]:
        """Rejected readings, oldest first. The newest 10,000 are kept; `dead_letters_dropped` counts the others."""
        with self._reading():
            query = "SELECT batch_id, body, code, reason, rejected_at FROM dead_letters ORDER BY position"
            return [DeadLetter(*row) for row in self._db.execute(query)]

    def clear_dead_letters(self) -> None:
        with self._writing():
            self._db.execute("DELETE FROM dead_letters")

    def _waiting(self, query: str, *values: int) -> List[Waiting]:
        with self._reading():
            return [Waiting(int(position), str(batch_id), str(body)) for position, batch_id, body in self._db.execute(query, values)]

    def _counted(self, name: str) -> int:
        with self._reading():
            row = self._db.execute("SELECT value FROM counters WHERE name = ?", (name,)).fetchone()
            return 0 if row is None else int(row[0])

    def _count(self, table: str) -> int:
        return int(self._db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])

    def _drop_oldest(self, table: str, count: int, counter: str) -> None:
        self._db.execute(
            f"DELETE FROM {table} WHERE position IN (SELECT position FROM {table} ORDER BY position LIMIT ?)", (count,)
        )
        self._db.execute(
            "INSERT INTO counters (name, value) VALUES (?, ?) "
            "ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
            (counter, count),
        )

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Locks the connection. Reads see only committed data."""
        with self._lock:
            # An interrupt or a failed rollback can leave an open transaction.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            yield

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Runs a transaction that takes the write lock first, so that two processes cannot deadlock."""
        with self._reading():
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield
                self._db.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise

    def _roll_back(self) -> None:
        """Rolls back unless SQLite already has. It raises no error, so that the original one is reported."""
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.Error as error:
            _log.warning("cannot roll back a transaction: %s", error)
