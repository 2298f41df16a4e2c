"""What a device says: who it is, and the readings that it makes. Wrong values are refused here, before they are stored."""

from __future__ import annotations

import dataclasses
import math
import re
import uuid
from typing import Any, Dict, Mapping, Optional, Sequence, Union

Number = Union[int, float]

_HARDWARE_ID = re.compile(r"[0-9A-F]{2}(:[0-9A-F]{2}){5}")
_NAME = re.compile(r"[A-Za-z0-9_]{1,64}")
_BATCH_ID = re.compile(r"[!-~]{1,256}")
_FIRMWARE_VERSION = re.compile(r"[ -~]{1,64}")
# 2000-01-01 and 2100-01-01.
_TIMESTAMP_MS_MIN = 946_684_800_000
_TIMESTAMP_MS_MAX = 4_102_444_800_000
_VALUES_MAX = 64


@dataclasses.dataclass(frozen=True)
class Capabilities:
    sensors: Sequence[str] = ()
    features: Mapping[str, bool] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in (*self.sensors, *self.features):
            _check(_NAME, name, "a sensor's name must be 1 to 64 letters, digits and _")

    def to_json(self) -> Dict[str, Any]:
        return {"sensors": list(self.sensors), "features": dict(self.features)}


@dataclasses.dataclass(frozen=True)
class Device:
    """A device since it was switched on: every start has a boot id of its own."""

    hardware_id: str
    firmware_version: str
    boot_id: str = dataclasses.field(default_factory=lambda: str(uuid.uuid4()))
    friendly_name: Optional[str] = None
    capabilities: Capabilities = dataclasses.field(default_factory=Capabilities)

    def __post_init__(self) -> None:
        _check(_HARDWARE_ID, self.hardware_id, "hardware_id must be a MAC address as AA:BB:CC:DD:EE:FF, in upper case")
        _check(_FIRMWARE_VERSION, self.firmware_version, "firmware_version must be 1 to 64 printable ASCII characters")
        if uuid.UUID(self.boot_id).version != 4:
            raise ValueError("boot_id must be a UUID of version 4")

    def reading(
        self,
        window_start_ms: int,
        window_end_ms: int,
        sensors: Mapping[str, Number],
        sensor_status: Optional[Mapping[str, str]] = None,
    ) -> "Reading":
        """The averages of one window. Its id is made of the device, its boot and the window, so that it is never made twice."""
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
        # Absent keeps the name that an operator gave.
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
        _check(_HARDWARE_ID, self.hardware_id, "hardware_id must be a MAC address as AA:BB:CC:DD:EE:FF, in upper case")
        if not _TIMESTAMP_MS_MIN <= self.timestamp_ms < _TIMESTAMP_MS_MAX:
            raise ValueError("timestamp_ms must lie in the years 2000 to 2099; is the clock set?")
        if len(self.sensors) > _VALUES_MAX or len(self.sensor_status) > _VALUES_MAX:
            raise ValueError(f"a reading has at most {_VALUES_MAX} values and states")
        for name, value in self.sensors.items():
            _check(_NAME, name, "a sensor's name must be 1 to 64 letters, digits and _")
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                raise ValueError(f"{name} must be a finite number")
        for name, status in self.sensor_status.items():
            _check(_NAME, name, "a sensor's name must be 1 to 64 letters, digits and _")
            if status not in ("ok", "error"):
                raise ValueError(f'the status of {name} must be "ok" or "error"')

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
