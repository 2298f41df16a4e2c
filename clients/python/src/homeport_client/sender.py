"""Brings what is in the buffer to the server, for as long as it takes."""

from __future__ import annotations

import logging
import sqlite3
import threading
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from .buffer import Buffer, Waiting
from .client import BODY_BYTES_MAX, READINGS_PER_REQUEST_MAX, Client, Refused, Unavailable, data_body
from .reading import Device, Reading
from .retry import RetryPolicy

# Readings that are sent alone to find out whether the server takes any.
WITNESSES_MAX = 5
_BAD_REQUEST = 400
_UNAUTHORIZED = 401
_FORBIDDEN = 403
_TOO_LARGE = 413

_log = logging.getLogger("homeport_client")


class Sender:
    """One device with its buffer and its server.

    `add` only writes to disk and never waits for the network. `flush` sends what is there once; `run` does so for ever.
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
        """Sends every reading in the buffer; how many the server took.

        Raises `Unavailable`, `Refused` or `sqlite3.Error` at the first failure that is not the fault of a single reading, and
        at the end when readings were left that may be taken later. Everything that was not answered stays in the buffer.
        """
        self._register()
        return _Pass(self._client, self._buffer, self._batch).run()

    def run(self, stop: threading.Event, every_secs: float = 60.0, on_failure: Optional[Callable[[Exception], None]] = None) -> None:
        """Flushes every so often, and after a failure when the retry policy says, until `stop` is set. No failure ends it."""
        while not stop.is_set():
            try:
                self.flush()
                self._retry.succeeded()
                wait_secs = every_secs
            except Exception as error:
                # A key that is refused may be made good by an operator, and a full disk have room again.
                wait_secs = self._retry.failed(getattr(error, "retry_after_secs", None))
                is_expected = isinstance(error, (Unavailable, Refused, sqlite3.Error))
                _log.warning("%s; next attempt in %.1f s", error, wait_secs, exc_info=not is_expected)
                self._tell(on_failure, error)
            stop.wait(wait_secs)

    def _register(self) -> None:
        """Registers the device once. A server that does not take what the device says of itself registers it from its readings."""
        if self._is_registered:
            return
        try:
            self._client.register(self._device)
            self._is_registered = True
        except Refused as refusal:
            if refusal.status in (_UNAUTHORIZED, _FORBIDDEN):
                raise
            _log.warning("the device could not be registered: %s", refusal)

    @staticmethod
    def _tell(on_failure: Optional[Callable[[Exception], None]], error: Exception) -> None:
        try:
            if on_failure is not None:
                on_failure(error)
        except Exception:
            _log.exception("on_failure failed itself")


class _Pass:
    """One way through the buffer, from the oldest reading to the newest."""

    def __init__(self, client: Client, buffer: Buffer, batch: int) -> None:
        self._client = client
        self._buffer = buffer
        self._batch = batch
        # How much goes into one request: less when the server refuses one.
        self._count = batch
        self._bytes_max = BODY_BYTES_MAX
        # Readings up to here are delivered, rejected or left.
        self._after = 0
        self._delivered = 0
        # Whether the server took a request since the last reading was blamed.
        self._is_vouched = False
        self._left: Optional[Exception] = None

    def run(self) -> int:
        while True:
            readings = self._fitting(self._buffer.oldest(self._count, self._after))
            if not readings:
                break
            if _request_bytes(readings) > BODY_BYTES_MAX:
                # A server that closes the connection amid such a body leaves no answer to go by.
                self._settle([], {readings[0]: ("BODY_TOO_LARGE", f"a request has at most {BODY_BYTES_MAX} bytes")})
                continue
            try:
                self._send(readings)
                self._after = readings[-1].position
                self._count = min(self._count * 2, self._batch)
            except Refused as refusal:
                self._handle(refusal, readings)
        if self._left is not None:
            raise self._left
        return self._delivered

    def _fitting(self, readings: List[Waiting]) -> List[Waiting]:
        """As many of the first as go into one request, and one at least."""
        total = _request_bytes([])
        for count, reading in enumerate(readings):
            # With the comma behind it.
            total += len(reading.body.encode()) + 1
            if count > 0 and total > self._bytes_max:
                return readings[:count]
        return readings

    def _send(self, readings: Sequence[Waiting]) -> None:
        """Sends readings and settles what the answer says of each."""
        answer = self._client.send([reading.body for reading in readings])
        taken = [reading for reading in readings if reading.batch_id in answer.delivered]
        rejected = {reading: answer.rejected[reading.batch_id] for reading in readings if reading.batch_id in answer.rejected}
        foreign = [reading for reading in readings if reading.batch_id in answer.out_of_scope]
        unanswered = len(readings) - len(taken) - len(rejected) - len(foreign)
        if unanswered == len(readings):
            raise Unavailable("the server answered for none of the readings")
        self._is_vouched = True
        self._settle(taken, rejected)
        if foreign:
            # Another key may bring them, so that they wait as they would after a 403.
            self._left = Refused(_FORBIDDEN, "OUT_OF_SCOPE", answer.out_of_scope[foreign[0].batch_id], is_homeports=True)
        elif unanswered:
            self._left = Unavailable(f"the server did not answer for {unanswered} readings")

    def _settle(self, taken: Sequence[Waiting], rejected: Dict[Waiting, Tuple[str, str]]) -> None:
        self._buffer.settle(taken, rejected)
        self._delivered += len(taken)
        for reading, (code, reason) in rejected.items():
            _log.warning("%s became a dead letter: %s %s", reading.batch_id, code, reason)

    def _handle(self, refusal: Refused, readings: Sequence[Waiting]) -> None:
        """Looks for the reading for which a request was refused; raises a refusal that has another reason."""
        # Proxies limit bodies too; of what else they say nothing is about a reading.
        if refusal.status != _TOO_LARGE and not (refusal.status == _BAD_REQUEST and refusal.is_homeports):
            raise refusal
        if len(readings) > 1:
            if refusal.status == _TOO_LARGE:
                self._bytes_max = _request_bytes(readings) // 2
            else:
                self._count = len(readings) // 2
            return
        # IMPORTANT: a server that takes nothing else has another reason, such as a proxy that spoils all bodies. Without this
        # question one reading after the other would become a dead letter, and more of them than are kept.
        if not (self._is_vouched or self._takes_another(readings[0])):
            raise refusal
        self._is_vouched = False
        if refusal.is_homeports:
            self._settle([], {readings[0]: (refusal.code, refusal.detail)})
        else:
            self._left = refusal
            self._after = readings[0].position

    def _takes_another(self, suspect: Waiting) -> bool:
        """Whether the server takes one of the newest readings."""
        for witness in self._buffer.newest(WITNESSES_MAX):
            if witness.position == suspect.position or _request_bytes([witness]) > BODY_BYTES_MAX:
                continue
            try:
                self._send([witness])
                return True
            except Refused as refusal:
                if refusal.status not in (_BAD_REQUEST, _TOO_LARGE):
                    raise
        return False


def _request_bytes(readings: Sequence[Waiting]) -> int:
    return len(data_body([reading.body for reading in readings]).encode())
