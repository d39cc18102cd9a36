"""Computes when the next attempt starts (SPEC.md section 4)."""

from __future__ import annotations

import math
import re
from email.utils import parsedate_to_datetime

from ._wire import RETRIED

_BASE = 0.1
_CAP = 1.0
_SECONDS = re.compile(r"[0-9]{1,9}")
_DATE = re.compile(r"[A-Z][a-z]{2}, ")


def is_retryable(status: int) -> bool:
    return status in RETRIED


def jitter(retry: int, chance: float) -> float:
    """Full jitter in seconds; the first retry is 1, `chance` is in [0, 1)."""
    return chance * min(_CAP, _BASE * 2.0 ** (retry - 1))


def parse_retry_after(value: str | None, now: float) -> int | None:
    """Whole seconds from now (epoch seconds), or None for an invalid header."""
    if value is None:
        return None
    text = value.strip()
    if _SECONDS.fullmatch(text):
        return int(text)
    if not _DATE.match(text):
        return None
    try:
        at = parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return max(0, math.ceil(at - now))


def wait_before(retry: int, retry_after: int | None, remaining: float, chance: float) -> float | None:
    """Seconds to wait, or None if that would reach the deadline."""
    wait = (retry_after or 0) + jitter(retry, chance)
    return wait if wait < remaining else None
