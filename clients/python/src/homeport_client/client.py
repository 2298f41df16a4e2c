"""The two requests that a sensor makes. No state and no retries in here: `Sender` has both."""

from __future__ import annotations

import dataclasses
import datetime
import email.utils
import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Tuple

from .reading import Device

READINGS_PER_REQUEST_MAX = 100
_ANSWER_BYTES_MAX = 4 * 1024 * 1024
_TEMPORARY = frozenset((408, 425, 429))


class Unavailable(Exception):
    """The server did not answer, or asked to come back later. Whether it has the readings is not known."""

    def __init__(self, message: str, retry_after_secs: Optional[float] = None) -> None:
        super().__init__(message)
        self.retry_after_secs = retry_after_secs


class Refused(Exception):
    """The server will refuse the same request again: a wrong key, or a request that it cannot read."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(f"{status} {code}: {detail}")
        self.status = status
        self.code = code


@dataclasses.dataclass(frozen=True)
class Answer:
    """What became of the readings of one request."""

    delivered: FrozenSet[str]
    """In either list of the answer: stored now, or stored before."""

    rejected: Mapping[str, Tuple[str, str]]
    """Code and reason by id."""


class Client:
    def __init__(self, url: str, api_key: str, timeout_secs: float = 30.0) -> None:
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise ValueError("the address must begin with http:// or https://")
        self._url = url.rstrip("/")
        self._api_key = api_key
        self._timeout_secs = timeout_secs
        # A redirect would carry the key to an address that nobody configured.
        self._opener = urllib.request.build_opener(_NoRedirects)

    def __repr__(self) -> str:
        return f"Client({self._url!r})"

    def register(self, device: Device) -> str:
        """Registers the device, for the first time or again; its confirmation id."""
        answer = self._post("/v1/sensors/register", json.dumps(device.to_json()))
        return str(answer["confirmation_id"])

    def send(self, bodies: List[str]) -> Answer:
        """Sends up to 100 readings that are JSON already."""
        if not 1 <= len(bodies) <= READINGS_PER_REQUEST_MAX:
            raise ValueError(f"a request has 1 to {READINGS_PER_REQUEST_MAX} readings")
        answer = self._post("/v1/sensors/data", '{"readings":[' + ",".join(bodies) + "]}")
        delivered = frozenset(answer["acknowledged_batch_ids"]) | frozenset(answer["duplicate_batch_ids"])
        rejected = {
            result["batch_id"]: (str(result.get("code", "")), str(result.get("reason", "")))
            for result in answer["results"]
            if result["status"] == "rejected" and result["batch_id"] is not None and result["batch_id"] not in delivered
        }
        return Answer(delivered, rejected)

    def _post(self, path: str, body: str) -> Dict[str, Any]:
        request = urllib.request.Request(
            self._url + path,
            data=body.encode(),
            headers={"Content-Type": "application/json", "X-API-Key": self._api_key},
            method="POST",
        )
        try:
            with self._opener.open(request, timeout=self._timeout_secs) as response:
                return _parse(response.read(_ANSWER_BYTES_MAX))
        except urllib.error.HTTPError as error:
            raise _failure(error) from None
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(f"no answer: {error}") from error


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _parse(body: bytes) -> Dict[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError as error:
        raise Unavailable("the answer is not JSON: something else than Homeport answers here") from error
    if not isinstance(answer, dict):
        raise Unavailable("the answer is not an object: something else than Homeport answers here")
    return answer


def _failure(error: urllib.error.HTTPError) -> Exception:
    try:
        problem = json.loads(error.read(_ANSWER_BYTES_MAX))
        code, detail = str(problem["code"]), str(problem["detail"])
    except (ValueError, KeyError, TypeError, OSError, http.client.HTTPException):
        code, detail = "UNKNOWN", str(error.reason)
    if error.code >= 500 or error.code in _TEMPORARY:
        return Unavailable(f"{error.code} {code}: {detail}", _retry_after_secs(error.headers.get("Retry-After")))
    return Refused(error.code, code, detail)


def _retry_after_secs(value: Optional[str]) -> Optional[float]:
    """Seconds, or a date."""
    if value is None:
        return None
    try:
        return float(int(value))
    except ValueError:
        pass
    try:
        moment = email.utils.parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.timezone.utc)
    return max((moment - datetime.datetime.now(datetime.timezone.utc)).total_seconds(), 0.0)
