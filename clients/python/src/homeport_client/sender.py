"""Brings what is in the buffer to the server, for as long as it takes."""

from __future__ import annotations

import logging
import threading
from typing import Callable, Optional

from .buffer import Buffer
from .client import READINGS_PER_REQUEST_MAX, Client, Refused, Unavailable
from .reading import Device, Reading
from .retry import RetryPolicy

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
        """Sends until the buffer is empty; how many readings the server took.

        Raises `Unavailable` or `Refused` at the first failure. Everything that was not answered stays in the buffer.
        """
        if not self._is_registered:
            self._client.register(self._device)
            self._is_registered = True
        delivered = 0
        while True:
            waiting = self._buffer.oldest(self._batch)
            if not waiting:
                return delivered
            answer = self._client.send([reading.body for reading in waiting])
            taken = [reading for reading in waiting if reading.batch_id in answer.delivered]
            rejected = {reading: answer.rejected[reading.batch_id] for reading in waiting if reading.batch_id in answer.rejected}
            if not taken and not rejected:
                raise Unavailable("the server answered for none of the readings")
            self._buffer.settle(taken, rejected)
            delivered += len(taken)
            for reading, (code, reason) in rejected.items():
                _log.warning("the server rejected %s: %s %s", reading.batch_id, code, reason)

    def run(self, stop: threading.Event, every_secs: float = 60.0, on_failure: Optional[Callable[[Exception], None]] = None) -> None:
        """Flushes every so often, and after a failure when the retry policy says, until `stop` is set."""
        while not stop.is_set():
            try:
                self.flush()
                self._retry.succeeded()
                wait_secs = every_secs
            except (Unavailable, Refused) as error:
                # A key that is refused may be made good by an operator, so a device goes on trying that too.
                wait_secs = self._retry.failed(getattr(error, "retry_after_secs", None))
                _log.warning("%s; next attempt in %.1f s", error, wait_secs)
                if on_failure is not None:
                    on_failure(error)
            stop.wait(wait_secs)
