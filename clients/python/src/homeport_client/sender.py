"""Sends buffered readings to the server until it has stored them."""

from __future__ import annotations

import logging
import sqlite3
import threading
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from .buffer import Buffer, Waiting
from .client import BODY_BYTES_MAX, READINGS_PER_REQUEST_MAX, Client, Refused, Unavailable, data_body
from .reading import Device, Reading
from .retry import RetryPolicy

# Readings that are sent alone to find out whether the server accepts any.
PROBES_MAX = 5
_BAD_REQUEST = 400
_UNAUTHORIZED = 401
_FORBIDDEN = 403
_TOO_LARGE = 413

_log = logging.getLogger("homeport_client")


class Sender:
    """One device with its buffer and its server.

    `add` only writes to disk and never waits for the network. `flush` sends all buffered readings once; `run` does so repeatedly.
    """

    def __init__(
        self,
        client: Client,
        buffer: Buffer,
        device: Device,
        batch: int = READINGS_PER_REQUEST_MAX,
        retry: Optional[RetryPolicy] = None,
    ) -> None:
        if not 1 <= batch <= READINGS_PER_REQUEST_MAX:
            raise ValueError(f"batch must be 1 to {READINGS_PER_REQUEST_MAX}")
        self._client = client
        self._buffer = buffer
        self._device = device
        self._batch = batch
        self._retry = retry or RetryPolicy()
        self._is_registered = False

    def add(self, reading: Reading) -> None:
        self._buffer.add(reading)

    def flush(self) -> int:
        """Sends every reading in the buffer and returns how many were delivered.

        Raises `Unavailable`, `Refused` or `sqlite3.Error` at the first failure that a single reading did not cause, and at the
        end if readings remain that may be accepted later. Unacknowledged readings stay in the buffer.
        """
        self._register()
        return _Pass(self._client, self._buffer, self._batch).run()

    def run(self, stop: threading.Event, every_secs: float = 60.0, on_failure: Optional[Callable[[Exception], None]] = None) -> None:
        """Flushes every `every_secs`, and after a failure as the retry policy says, until `stop` is set. No failure ends it."""
        while not stop.is_set():
            try:
                self.flush()
                self._retry.succeeded()
                wait_secs = every_secs
            except Exception as error:
                # An operator may fix a rejected key, and a full disk may have room again.
                wait_secs = self._retry.failed(getattr(error, "retry_after_secs", None))
                is_expected = isinstance(error, (Unavailable, Refused, sqlite3.Error))
                _log.warning("%s; next attempt in %.1f s", error, wait_secs, exc_info=not is_expected)
                self._report(on_failure, error)
            stop.wait(wait_secs)

    def _register(self) -> None:
        """Registers the device once. If the server rejects the registration, it registers the device from its readings."""
        if self._is_registered:
            return
        try:
            self._client.register(self._device)
            self._is_registered = True
        except Refused as refusal:
            if refusal.status in (_UNAUTHORIZED, _FORBIDDEN):
                raise
            _log.warning("cannot register the device: %s", refusal)

    @staticmethod
    def _report(on_failure: Optional[Callable[[Exception], None]], error: Exception) -> None:
        try:
            if on_failure is not None:
                on_failure(error)
        except Exception:
            _log.exception("on_failure raised an exception")


class _Pass:
    """One pass through the buffer, from the oldest reading to the newest."""

    def __init__(self, client: Client, buffer: Buffer, batch: int) -> None:
        self._client = client
        self._buffer = buffer
        self._batch = batch
        # The size of the next request; smaller after the server rejects one.
        self._count = batch
        self._bytes_max = BODY_BYTES_MAX
        # Readings up to this position are delivered, rejected or skipped.
        self._after = 0
        self._delivered = 0
        # Whether the server accepted a request since the last rejected reading.
        self._server_accepts = False
        self._pending_error: Optional[Exception] = None

    def run(self) -> int:
        while True:
            readings = self._fitting(self._buffer.oldest(self._count, self._after))
            if not readings:
                break
            if _request_bytes(readings) > BODY_BYTES_MAX:
                # A server may close the connection during such a body, without a response.
                self._settle([], {readings[0]: ("BODY_TOO_LARGE", f"a request has at most {BODY_BYTES_MAX} bytes")})
                continue
            try:
                self._send(readings)
                self._after = readings[-1].position
                self._count = min(self._count * 2, self._batch)
            except Refused as refusal:
                self._handle(refusal, readings)
        if self._pending_error is not None:
            raise self._pending_error
        return self._delivered

    def _fitting(self, readings: List[Waiting]) -> List[Waiting]:
        """The first readings that fit into one request, at least one."""
        total = _request_bytes([])
        for count, reading in enumerate(readings):
            # Plus the comma.
            total += len(reading.body.encode()) + 1
            if count > 0 and total > self._bytes_max:
                return readings[:count]
        return readings

    def _send(self, readings: Sequence[Waiting]) -> None:
        """Sends readings and settles each one by its result."""
        answer = self._client.send([reading.body for reading in readings])
        taken = [reading for reading in readings if reading.batch_id in answer.delivered]
        rejected = {reading: answer.rejected[reading.batch_id] for reading in readings if reading.batch_id in answer.rejected}
        foreign = [reading for reading in readings if reading.batch_id in answer.out_of_scope]
        unanswered = len(readings) - len(taken) - len(rejected) - len(foreign)
        if unanswered == len(readings):
            raise Unavailable("the response has no result for any of the readings")
        self._server_accepts = True
        self._settle(taken, rejected)
        if foreign:
            # Another key may deliver them, so they wait as after a 403.
            self._pending_error = Refused(_FORBIDDEN, "OUT_OF_SCOPE", answer.out_of_scope[foreign[0].batch_id], is_homeports=True)
        elif unanswered:
            self._pending_error = Unavailable(f"the response has no result for {unanswered} readings")

    def _settle(self, taken: Sequence[Waiting], rejected: Dict[Waiting, Tuple[str, str]]) -> None:
        self._buffer.settle(taken, rejected)
        self._delivered += len(taken)
        for reading, (code, reason) in rejected.items():
            _log.warning("%s moved to the dead letters: %s %s", reading.batch_id, code, reason)

    def _handle(self, refusal: Refused, readings: Sequence[Waiting]) -> None:
        """Narrows a rejected request down to the reading that caused it; raises the error if it has another cause."""
        # A 413 may come from a proxy; any other response of a proxy says nothing about a reading.
        if refusal.status != _TOO_LARGE and not (refusal.status == _BAD_REQUEST and refusal.is_homeports):
            raise refusal
        if len(readings) > 1:
            if refusal.status == _TOO_LARGE:
                self._bytes_max = _request_bytes(readings) // 2
            else:
                self._count = len(readings) // 2
            return
        # IMPORTANT: if the server accepts no other reading either, the cause is elsewhere, such as a proxy that corrupts bodies.
        # Without this check, all readings would move to the dead letters, more than those can hold.
        if not (self._server_accepts or self._accepts_another(readings[0])):
            raise refusal
        self._server_accepts = False
        if refusal.is_homeports:
            self._settle([], {readings[0]: (refusal.code, refusal.detail)})
        else:
            self._pending_error = refusal
            self._after = readings[0].position

    def _accepts_another(self, suspect: Waiting) -> bool:
        """Whether the server accepts one of the newest readings."""
        for probe in self._buffer.newest(PROBES_MAX):
            if probe.position == suspect.position or _request_bytes([probe]) > BODY_BYTES_MAX:
                continue
            try:
                self._send([probe])
                return True
            except Refused as refusal:
                if refusal.status not in (_BAD_REQUEST, _TOO_LARGE):
                    raise
        return False


def _request_bytes(readings: Sequence[Waiting]) -> int:
    return len(data_body([reading.body for reading in readings]).encode())
