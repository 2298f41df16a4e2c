"""Devices and their readings. Invalid values raise an error here, before they are stored."""

from __future__ import annotations

import dataclasses
import decimal
import json
import math
import re
import unicodedata
import uuid
from typing import Any, Dict, Mapping, Optional, Sequence, Union

Number = Union[int, float]

_HARDWARE_ID = re.compile(r"[0-9A-F]{2}(:[0-9A-F]{2}){5}")
_NAME = re.compile(r"[A-Za-z0-9_]{1,64}")
_BATCH_ID = re.compile(r"[!-~]{1,256}")
_FIRMWARE_VERSION = re.compile(r"[ -~]{1,64}")
_UUID_V4 = re.compile(r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-4[0-9A-Fa-f]{3}-[89ABab][0-9A-Fa-f]{3}-[0-9A-Fa-f]{12}")
_FRIENDLY_NAME_CHARS_MAX = 64
# 2000-01-01 and 2100-01-01.
_TIMESTAMP_MS_MIN = 946_684_800_000
_TIMESTAMP_MS_MAX = 4_102_444_800_000
_VALUES_MAX = 64
_CAPABILITIES_MAX = 64
# DynamoDB's limits on numbers: significant digits, and the power of ten of the first digit.
_DIGITS_MAX = 38
_MAGNITUDE_MIN = -130
_MAGNITUDE_MAX = 125


@dataclasses.dataclass(frozen=True)
class Capabilities:
    sensors: Sequence[str] = ()
    features: Mapping[str, bool] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        # A string is also a sequence.
        if isinstance(self.sensors, str):
            raise ValueError("sensors must be a list of names")
        if len(self.sensors) > _CAPABILITIES_MAX or len(self.features) > _CAPABILITIES_MAX:
            raise ValueError(f"a device has at most {_CAPABILITIES_MAX} sensors and {_CAPABILITIES_MAX} features")
        for name in (*self.sensors, *self.features):
            _check_name(name)
        for name, is_on in self.features.items():
            if not isinstance(is_on, bool):
                raise ValueError(f"the feature {name} must be True or False")

    def to_json(self) -> Dict[str, Any]:
        return {"sensors": list(self.sensors), "features": dict(self.features)}


@dataclasses.dataclass(frozen=True)
class Device:
    """A device and its current boot. Every start has a new boot id."""

    hardware_id: str
    firmware_version: str
    boot_id: str = dataclasses.field(default_factory=lambda: str(uuid.uuid4()))
    friendly_name: Optional[str] = None
    capabilities: Capabilities = dataclasses.field(default_factory=Capabilities)

    def __post_init__(self) -> None:
        _check_origin(self.hardware_id, self.boot_id, self.firmware_version)
        if self.friendly_name is not None:
            _check_friendly_name(self.friendly_name)

    def reading(
        self,
        window_start_ms: int,
        window_end_ms: int,
        sensors: Mapping[str, Number],
        sensor_status: Optional[Mapping[str, str]] = None,
    ) -> "Reading":
        """A reading with the averages of one time window.

        Its id consists of the device, the boot and the window, so each window has one reading. Use exact milliseconds for the
        start and the end, so that no window repeats when the clock is set back.
        """
        if not _is_whole(window_start_ms):
            raise ValueError("window_start_ms must be a whole number")
        return Reading(
            batch_id=f"{self.hardware_id}_{self.boot_id}_{window_start_ms}_{window_end_ms}",
            hardware_id=self.hardware_id,
            boot_id=self.boot_id,
            firmware_version=self.firmware_version,
            timestamp_ms=window_end_ms,
            sensors=sensors,
            sensor_status=sensor_status or {},
        )

    def to_json(self) -> Dict[str, Any]:
        body: Dict[str, Any] = {
            "hardware_id": self.hardware_id,
            "boot_id": self.boot_id,
            "firmware_version": self.firmware_version,
            "capabilities": self.capabilities.to_json(),
        }
        # Without a name, the server keeps the one that an operator set.
        if self.friendly_name is not None:
            body["friendly_name"] = self.friendly_name
        return body


@dataclasses.dataclass(frozen=True)
class Reading:
    batch_id: str
    hardware_id: str
    boot_id: str
    firmware_version: str
    timestamp_ms: int
    sensors: Mapping[str, Number]
    sensor_status: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        _check(_BATCH_ID, self.batch_id, "batch_id must be 1 to 256 graphic ASCII characters")
        _check_origin(self.hardware_id, self.boot_id, self.firmware_version)
        if not _is_whole(self.timestamp_ms):
            raise ValueError("timestamp_ms must be a whole number")
        if not _TIMESTAMP_MS_MIN <= self.timestamp_ms < _TIMESTAMP_MS_MAX:
            raise ValueError("timestamp_ms must be in the years 2000 to 2099; check the clock")
        _check_values(self.sensors, self.sensor_status)

    def to_json(self) -> Dict[str, Any]:
        return {
            "batch_id": self.batch_id,
            "hardware_id": self.hardware_id,
            "boot_id": self.boot_id,
            "firmware_version": self.firmware_version,
            "timestamp_ms": self.timestamp_ms,
            "sensors": dict(self.sensors),
            "sensor_status": dict(self.sensor_status),
        }


def _check(pattern: "re.Pattern[str]", text: str, message: str) -> None:
    if not isinstance(text, str) or pattern.fullmatch(text) is None:
        raise ValueError(message)


def _check_name(name: str) -> None:
    _check(_NAME, name, "a sensor's name must be 1 to 64 letters, digits and _")


def _check_origin(hardware_id: str, boot_id: str, firmware_version: str) -> None:
    _check(_HARDWARE_ID, hardware_id, "hardware_id must be a MAC address in upper case, such as AA:BB:CC:DD:EE:FF")
    _check(_UUID_V4, boot_id, "boot_id must be a UUID of version 4, such as 550e8400-e29b-41d4-a716-446655440000")
    _check(_FIRMWARE_VERSION, firmware_version, "firmware_version must be 1 to 64 printable ASCII characters")


def _check_friendly_name(name: str) -> None:
    is_valid = (
        isinstance(name, str)
        and len(name) <= _FRIENDLY_NAME_CHARS_MAX
        and name.strip() != ""
        # Control characters, and surrogates, which JSON cannot encode.
        and not any(unicodedata.category(character) in ("Cc", "Cs") for character in name)
    )
    if not is_valid:
        raise ValueError(f"friendly_name must be 1 to {_FRIENDLY_NAME_CHARS_MAX} printable characters")


def _check_values(sensors: Mapping[str, Number], sensor_status: Mapping[str, str]) -> None:
    if len(sensors) > _VALUES_MAX or len(sensor_status) > _VALUES_MAX:
        raise ValueError(f"a reading has at most {_VALUES_MAX} values and states")
    for name, value in sensors.items():
        _check_name(name)
        _check_number(name, value)
    for name, status in sensor_status.items():
        _check_name(name)
        if status not in ("ok", "error"):
            raise ValueError(f'the status of {name} must be "ok" or "error"')


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def _check_number(name: str, value: Number) -> None:
    if not _is_whole(value) and not (isinstance(value, float) and math.isfinite(value)):
        raise ValueError(f"{name} must be a finite number")
    # Python cannot print much larger integers or convert them to floats.
    is_huge = isinstance(value, int) and abs(value) >= 10 ** (_MAGNITUDE_MAX + 1)
    if is_huge or not _fits(decimal.Decimal(json.dumps(value))):
        raise ValueError(
            f"{name} must be zero or between 1e{_MAGNITUDE_MIN} and 9.99e{_MAGNITUDE_MAX}, "
            f"with at most {_DIGITS_MAX} significant digits"
        )


def _fits(number: decimal.Decimal) -> bool:
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0")
    return number.is_zero() or (len(digits) <= _DIGITS_MAX and _MAGNITUDE_MIN <= number.adjusted() <= _MAGNITUDE_MAX)
