"""Sends sensor readings to Homeport without losing any. Needs only Python's standard library."""

from .buffer import Buffer, BufferFull, DeadLetter, Waiting, WhenFull
from .client import Client, Refused, Unavailable
from .reading import Capabilities, Device, Reading
from .retry import RetryPolicy
from .sender import Sender

__all__ = [
    "Buffer",
    "BufferFull",
    "Capabilities",
    "Client",
    "DeadLetter",
    "Device",
    "Reading",
    "Refused",
    "RetryPolicy",
    "Sender",
    "Unavailable",
    "Waiting",
    "WhenFull",
]
