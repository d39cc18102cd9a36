"""Checks the shape of answers by the shapes of the OpenAPI document, and builds results from them.

Readers return None for a malformed answer.
"""

from __future__ import annotations

import dataclasses
import json
import re
import types
import typing
from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

from ._errors import ConsentError
from ._json import is_integer, is_object, is_seq
from ._state_cookie import SignedState, parse_state
from ._types import AgentAnswer, Decision, Verdict
from ._wire import OPERATIONS

T = TypeVar("T")

_HASH = re.compile(r"[0-9a-f]{64}")

_WORDS: dict[str, Callable[[object], bool]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "integer": is_integer,
    "seq": is_seq,
    "hash": lambda value: isinstance(value, str) and _HASH.fullmatch(value) is not None,
    "object": is_object,
}
_SHAPES = {name: json.loads(row.shape or "{}") for name, row in OPERATIONS.items()}


def _matches(value: Any, shape: Any) -> bool:
    if isinstance(shape, str):
        word, _, or_null = shape.partition("|")
        return (value is None and or_null != "") or _WORDS[word](value)
    if isinstance(shape, list):
        return isinstance(value, list) and all(_matches(item, shape[0]) for item in value)
    return is_object(value) and all(
        _matches(value[name.rstrip("?")], inner) if name.rstrip("?") in value else name.endswith("?")
        for name, inner in shape.items()
    )


def is_answer(operation: str, value: object) -> bool:
    """True if the value has the shape of the operation's answer."""
    return _matches(value, _SHAPES[operation])


def camel(name: str) -> str:
    first, *more = name.rstrip("_").split("_")
    return first + "".join(part.capitalize() for part in more)


@cache
def _fields_of(cls: Any) -> tuple[tuple[str, str, Any], ...]:
    """Name, name on the wire and type of each field."""
    hints = typing.get_type_hints(cls)
    return tuple((field.name, camel(field.name), hints[field.name]) for field in dataclasses.fields(cls))


def _convert(hint: Any, value: Any) -> Any:
    if isinstance(hint, types.UnionType):
        hint = next(one for one in typing.get_args(hint) if one is not type(None))
    if value is None:
        return None
    if typing.get_origin(hint) is tuple:
        return tuple(_convert(typing.get_args(hint)[0], item) for item in value)
    if hint is datetime:
        return datetime.fromisoformat(value)
    return build(hint, value) if dataclasses.is_dataclass(hint) and isinstance(hint, type) else value


def build(cls: type[T], value: Any, **more: Any) -> T:
    """Makes a result of an answer whose shape was checked."""
    fields = {
        name: _convert(hint, value.get(wire))
        for name, wire, hint in _fields_of(typing.cast(Any, cls))
        if wire in value and name not in more
    }
    return cls(**fields, **more)


def reader(operation: str, cls: type[T], **expected: str) -> Callable[[Any], T | None]:
    """`expected` are fields of the answer, which must be about what was asked."""

    def read(value: Any) -> T | None:
        if not is_answer(operation, value):
            return None
        if any(value[camel(name)] != text for name, text in expected.items()):
            return None
        try:
            return build(cls, value)
        except ValueError:
            # A time that is none.
            return None

    return read


def read_decision(value: Any) -> Decision | None:
    """`allowed` must be a JSON boolean; any other value makes the decision malformed."""
    if not is_answer("canProcess", value):
        return None
    return build(Decision, {"policyVersion": None, "expiresAt": None, **value}, error=None)


def read_verdict(request_id: str) -> Callable[[Any], Verdict | None]:
    def read(value: Any) -> Verdict | None:
        if not is_answer("decision", value) or value["requestId"] != request_id:
            return None
        attested = value.get("attested")
        return build(Verdict, value, raw=value, attested=attested if is_object(attested) else None)

    return read


def unavailable(error: ConsentError) -> Decision:
    """The denial of a check that could not be decided."""
    return Decision(False, "unavailable", None, None, None, error)


def unasked(error: ConsentError) -> AgentAnswer:
    """Nobody is verified if gpd cannot be asked."""
    return AgentAnswer("unverified", reason="unavailable", error=error)


def read_batch(value: object) -> dict[str, Decision | None] | None:
    """Decisions by id; None for a repeated id, a malformed decision or a malformed answer."""
    if not is_object(value) or not isinstance(value.get("results"), list):
        return None
    found: dict[str, Decision | None] = {}
    for item in value["results"]:
        name = item.get("id") if is_object(item) else None
        if isinstance(name, str):
            found[name] = None if name in found else read_decision(item)
    return found


@dataclasses.dataclass(frozen=True, slots=True)
class StateKeySet:
    """The keys of `GET /v1/consent/state-keys` for ES256, and the tenant of the API key."""

    tenant: str
    keys: tuple[tuple[str, str, str], ...]
    """kid, x and y."""


@dataclasses.dataclass(frozen=True, slots=True)
class RefreshedState:
    signed: SignedState
    purposes: tuple[str, ...]
    seq: int


def _is_state_key(value: Any) -> bool:
    if not _matches(value, {"kid": "string", "x": "string", "y": "string"}):
        return False
    is_p256: bool = value.get("kty") == "EC" and value.get("crv") == "P-256"
    is_signing: bool = value.get("alg", "ES256") == "ES256" and value.get("use", "sig") == "sig"
    return is_p256 and is_signing


def read_state_keys(value: Any) -> StateKeySet | None:
    """Keys of other kinds are passed over."""
    if not _matches(value, {"tenant": "string"}) or not isinstance(value.get("keys"), list):
        return None
    keys = [(key["kid"], key["x"], key["y"]) for key in value["keys"] if _is_state_key(key)]
    return StateKeySet(value["tenant"], tuple(keys))


def read_refreshed(value: Any) -> RefreshedState | None:
    if not is_answer("refreshState", value):
        return None
    signed = parse_state(value["state"])
    return None if signed is None else RefreshedState(signed, tuple(value["purposes"]), value["seq"])
