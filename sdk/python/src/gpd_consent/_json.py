"""Reads only strict JSON (RFC 8259)."""

from __future__ import annotations

import json
from typing import Any, TypeGuard

MAX_INTEGER = 2**53 - 1

JsonObject = dict[str, Any]


class Malformed:
    """The result for a body that gpd cannot have sent; it equals no JSON value."""


MALFORMED = Malformed()


def _refuse_constant(name: str) -> None:
    # Python accepts NaN and Infinity, which are not JSON.
    raise ValueError(name)


_decoder = json.JSONDecoder(parse_constant=_refuse_constant)


def parse_json(body: bytes | None) -> Any:
    """Returns the value, or MALFORMED. A body of None was too large."""
    if body is None:
        return MALFORMED
    try:
        return _decoder.decode(body.decode("utf-8"))
    except (ValueError, RecursionError):
        return MALFORMED


def is_object(value: object) -> TypeGuard[JsonObject]:
    return isinstance(value, dict)


def is_integer(value: object) -> TypeGuard[int]:
    """Excludes booleans, which are integers in Python but not in JSON."""
    return type(value) is int and -MAX_INTEGER <= value <= MAX_INTEGER


def is_seq(value: object) -> TypeGuard[int]:
    return is_integer(value) and value >= 0
