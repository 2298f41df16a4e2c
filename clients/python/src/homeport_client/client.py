"""The two HTTP requests of a sensor. `Sender` has the state and the retries."""

from __future__ import annotations

import dataclasses
import datetime
import email.utils
import http.client
import json
import os
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple, Union

from .reading import Device

READINGS_PER_REQUEST_MAX = 100
BODY_BYTES_MAX = 1024 * 1024
_ANSWER_BYTES_MAX = 4 * 1024 * 1024
_TEMPORARY = frozenset((408, 425, 429))
_API_KEY = re.compile(r"[!-~]+")
# Results that do not reject the reading itself: the key is out of scope, or the outcome is unknown.
_OUT_OF_SCOPE = "OUT_OF_SCOPE"
_OUTCOME_UNKNOWN = "UNKNOWN"


class Unavailable(Exception):
    """The server did not respond, or is temporarily unavailable. It may or may not have stored the readings."""

    def __init__(self, message: str, retry_after_secs: Optional[float] = None) -> None:
        super().__init__(message)
        self.retry_after_secs = retry_after_secs


class Refused(Exception):
    """The server rejects the request permanently, for example because of an invalid key or an invalid body."""

    def __init__(self, status: int, code: str, detail: str, is_homeports: bool = False) -> None:
        super().__init__(f"{status} {code}: {detail}")
        self.status = status
        self.code = code
        self.detail = detail
        self.is_homeports = is_homeports
        """Whether the response is from Homeport, not from a proxy or a captive portal."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """The results for the readings of one request."""

    delivered: FrozenSet[str]
    """Ids of readings that are stored, by this request or an earlier one."""

    rejected: Mapping[str, Tuple[str, str]]
    """Code and reason by id."""

    out_of_scope: Mapping[str, str]
    """Readings of devices outside the scopes of the key: the reason by id."""


class Client:
    def __init__(
        self,
        url: str,
        api_key: str,
        timeout_secs: float = 30.0,
        ca_file: Optional[Union[str, "os.PathLike[str]"]] = None,
    ) -> None:
        """`ca_file` is a PEM file with the only certificates to trust, by default those of this machine."""
        if _API_KEY.fullmatch(api_key) is None:
            raise ValueError("the API key must be graphic ASCII characters")
        scheme = urllib.parse.urlsplit(url).scheme
        if scheme not in ("http", "https"):
            raise ValueError("the URL must begin with http:// or https://")
        if ca_file is not None and scheme != "https":
            raise ValueError("ca_file needs a URL that begins with https://")
        self._url = url.rstrip("/")
        self._api_key = api_key
        self._timeout_secs = timeout_secs
        # Following a redirect would send the key to an unconfigured address.
        handlers: List[urllib.request.BaseHandler] = [_NoRedirects()]
        if ca_file is not None:
            handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=ca_file)))
        self._opener = urllib.request.build_opener(*handlers)

    def __repr__(self) -> str:
        return f"Client({self._url!r})"

    def register(self, device: Device) -> str:
        """Registers or updates the device and returns its confirmation id."""
        answer = self._post("/v1/sensors/register", json.dumps(device.to_json()))
        confirmation_id = answer.get("confirmation_id")
        if not isinstance(confirmation_id, str):
            raise _not_homeport("the response has no confirmation id")
        return confirmation_id

    def send(self, bodies: List[str]) -> Answer:
        """Sends up to 100 readings that are already encoded as JSON."""
        if not 1 <= len(bodies) <= READINGS_PER_REQUEST_MAX:
            raise ValueError(f"a request has 1 to {READINGS_PER_REQUEST_MAX} readings")
        return _read_answer(self._post("/v1/sensors/data", data_body(bodies)))

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
        # A host name with an empty or too long label raises UnicodeError.
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            raise Unavailable(f"no response: {error}") from error


def data_body(bodies: Sequence[str]) -> str:
    """The body of a request with these readings."""
    return '{"readings":[' + ",".join(bodies) + "]}"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _parse(body: bytes) -> Dict[str, Any]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _not_homeport("the response is not JSON") from error
    if not isinstance(answer, dict):
        raise _not_homeport("the response is not a JSON object")
    return answer


def _read_answer(answer: Dict[str, Any]) -> Answer:
    delivered = _ids(answer, "acknowledged_batch_ids") | _ids(answer, "duplicate_batch_ids")
    rejected: Dict[str, Tuple[str, str]] = {}
    out_of_scope: Dict[str, str] = {}
    results = answer.get("results")
    if not isinstance(results, list):
        raise _not_homeport("the response has no results")
    for result in results:
        if not isinstance(result, dict) or not isinstance(result.get("status"), str):
            raise _not_homeport("a result has no status")
        batch_id = result.get("batch_id")
        if result["status"] != "rejected" or not isinstance(batch_id, str) or batch_id in delivered:
            continue
        code, reason = str(result.get("code", "")), str(result.get("reason", ""))
        if code == _OUT_OF_SCOPE:
            out_of_scope[batch_id] = reason
        elif code != _OUTCOME_UNKNOWN:
            rejected[batch_id] = (code, reason)
    return Answer(delivered, rejected, out_of_scope)


def _ids(answer: Dict[str, Any], name: str) -> FrozenSet[str]:
    ids = answer.get(name)
    if not isinstance(ids, list) or not all(isinstance(batch_id, str) for batch_id in ids):
        raise _not_homeport(f"the response has no {name}")
    return frozenset(ids)


def _not_homeport(reason: str) -> Unavailable:
    return Unavailable(f"{reason}: the response is not from Homeport")


def _failure(error: urllib.error.HTTPError) -> Exception:
    code, detail, is_homeports = "UNKNOWN", str(error.reason), False
    try:
        problem = json.loads(error.read(_ANSWER_BYTES_MAX))
        if error.headers.get_content_type() == "application/problem+json" and isinstance(problem["code"], str):
            code, detail, is_homeports = problem["code"], str(problem["detail"]), True
    except (ValueError, KeyError, TypeError, RecursionError, OSError, http.client.HTTPException):
        pass
    if error.code >= 500 or error.code in _TEMPORARY:
        return Unavailable(f"{error.code} {code}: {detail}", _retry_after_secs(error.headers.get("Retry-After")))
    return Refused(error.code, code, detail, is_homeports)


def _retry_after_secs(value: Optional[str]) -> Optional[float]:
    """Parses a number of seconds or a date. The caller limits the wait."""
    if value is None:
        return None
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        moment = email.utils.parsedate_to_datetime(value)
    except (TypeError, ValueError, OverflowError, IndexError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.timezone.utc)
    return max((moment - datetime.datetime.now(datetime.timezone.utc)).total_seconds(), 0.0)
