"""Delays between retries."""

from __future__ import annotations

import dataclasses
import random
from typing import Optional

# The longest accepted Retry-After. It may be a date, and a wrong clock could otherwise silence a device for years.
RETRY_AFTER_SECS_MAX = 3600.0


@dataclasses.dataclass
class RetryPolicy:
    """Exponential backoff with jitter, so that devices that failed together do not retry together."""

    first_secs: float = 1.0
    longest_secs: float = 300.0
    random: random.Random = dataclasses.field(default_factory=random.Random)
    _failures: int = 0

    def succeeded(self) -> None:
        self._failures = 0

    def failed(self, retry_after_secs: Optional[float] = None) -> float:
        """The delay in seconds before the next attempt, at least the server's Retry-After (at most one hour)."""
        longest = min(self.first_secs * 2.0 ** min(self._failures, 30), self.longest_secs)
        self._failures += 1
        wait = longest * self.random.uniform(0.5, 1.0)
        return wait + min(max(retry_after_secs or 0.0, 0.0), RETRY_AFTER_SECS_MAX)
