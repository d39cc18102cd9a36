"""Checks arguments before a call (SPEC.md section 2). The messages contain no values."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ._errors import ConsentError
from ._json import is_seq

_REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_MAX_CHECKS = 100


def _require(method: str, holds: bool, hint: str) -> None:
    if not holds:
        raise ConsentError(method, "invalid-request", hint=hint)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def check_principal(method: str, principal_id: object) -> None:
    _require(method, _is_text(principal_id), "principal_id is a str that is not empty")


def check_text(method: str, name: str, value: object) -> None:
    _require(method, _is_text(value), f"{name} is a str that is not empty")


def check_check(method: str, principal_id: object, purpose: object, min_seq: object = None) -> None:
    check_principal(method, principal_id)
    _require(method, _is_text(purpose), "purpose is a str that is not empty")
    _require(method, min_seq is None or is_seq(min_seq), "min_seq is an int from 0 on")


def check_batch(method: str, checks: object) -> None:
    is_batch = isinstance(checks, Sequence) and not isinstance(checks, (str, bytes))
    _require(method, is_batch, "checks is a sequence of pairs (principal_id, purpose)")
    assert isinstance(checks, Sequence)  # noqa: S101 - for the type checker
    too_many = f"one call takes {_MAX_CHECKS} checks: they are of one snapshot"
    _require(method, len(checks) <= _MAX_CHECKS, too_many)
    for check in checks:
        is_pair = isinstance(check, (tuple, list)) and len(check) == 2
        _require(method, is_pair, "a check is a pair (principal_id, purpose)")
        check_check(method, *check)


def check_write(method: str, principal_id: object, purposes: object) -> None:
    check_principal(method, principal_id)
    # A str is a sequence of str: "newsletter" would become ten purposes.
    is_list = isinstance(purposes, Sequence) and not isinstance(purposes, (str, bytes))
    named = isinstance(purposes, Sequence) and is_list and len(purposes) > 0 and all(map(_is_text, purposes))
    _require(method, named, "purposes is a list of str that is not empty")


def check_purposes(method: str, purposes: object, principal_id: object) -> None:
    is_list = isinstance(purposes, Sequence) and not isinstance(purposes, (str, bytes))
    named = isinstance(purposes, Sequence) and is_list and all(map(_is_text, purposes))
    hint = f"purposes is a list of at most {_MAX_CHECKS} str that are not empty"
    _require(method, named and isinstance(purposes, Sequence) and len(purposes) <= _MAX_CHECKS, hint)
    if principal_id is not None:
        check_principal(method, principal_id)


def check_seq(method: str, seq: object) -> None:
    _require(method, is_seq(seq), "seq is an int from 0 on")


def check_request_id(method: str, request_id: object) -> None:
    holds = isinstance(request_id, str) and _REQUEST_ID.fullmatch(request_id) is not None
    _require(method, holds, "request_id is that of an ingest, req_…")


def check_report(method: str, request_id: object, outcome: object) -> None:
    check_request_id(method, request_id)
    _require(method, _is_text(outcome), "outcome is a str that is not empty")


def check_deadline(method: str, deadline: object) -> None:
    holds = isinstance(deadline, (int, float)) and 0.001 <= deadline <= 60
    _require(method, holds, "deadline is a number of seconds from 0.001 to 60")


def check_idempotency_key(method: str, key: object) -> None:
    holds = isinstance(key, str) and _IDEMPOTENCY_KEY.fullmatch(key) is not None
    _require(method, holds, "idempotency_key is 1 to 255 visible ASCII characters")
