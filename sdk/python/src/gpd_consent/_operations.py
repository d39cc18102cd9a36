"""For each method, the request and the reader of its answer; the two clients differ only in the transport."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from . import _checks as checks_of
from . import _shapes as shapes
from ._course import Answer, Call, Course
from ._errors import ConsentError, is_undecided
from ._json import parse_json
from ._options import Settings
from ._shapes import RefreshedState, StateKeySet
from ._state_cookie import SignedState
from ._types import (
    ConsentState,
    Decision,
    Health,
    History,
    Receipt,
    ReportedOutcome,
    Session,
    Verdict,
    WriteResult,
)

T = TypeVar("T")

WriteName = Literal["grant", "deny", "withdraw"]


@dataclass(frozen=True, slots=True, repr=False)
class Operation(Generic[T]):
    call: Call
    read: Callable[[Answer, Course], T | None]
    """Returns None for a malformed answer."""
    denied: Callable[[ConsentError], T] | None = None
    """Returns the denial that replaces an error, for checks only."""

    def conclude(self, outcome: Answer | ConsentError, course: Course) -> T:
        """The only place where an error becomes a denial or is raised. Not called in an except block, because
        `__context__` would then keep an exception of httpx, which contains the request with its key."""
        if isinstance(outcome, Answer):
            value = self.read(outcome, course)
            if value is not None:
                return value
            outcome = course.malformed(outcome)
        if self.denied is not None and is_undecided(outcome):
            return self.denied(outcome)
        raise outcome


def _encode(body: dict[str, Any]) -> bytes:
    """Leaves out missing values, which must not be sent as null."""
    present = {name: value for name, value in body.items() if value is not None}
    try:
        return json.dumps(present, separators=(",", ":"), allow_nan=False).encode("ascii")
    except (TypeError, ValueError):
        encoded = None
    return encoded or b""


def _reading(shape: Callable[[object], T | None]) -> Callable[[Answer, Course], T | None]:
    return lambda answer, _course: shape(parse_json(answer.body))


class Operations:
    """The operations of one client."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def _post(self, name: str, path: str, body: dict[str, Any], *principals: str, **fields: Any) -> Call:
        fields = {"statuses": (200,), "seconds": self._settings.timeout, **fields}
        encoded = _encode(body)
        if not encoded:
            raise ConsentError(name, "invalid-request", hint="an argument is no JSON value")
        return Call(name, "POST", path, body=encoded, principals=principals, **fields)

    def _get(self, name: str, path: str, **fields: Any) -> Call:
        return Call(name, "GET", path, statuses=(200,), seconds=self._settings.timeout, **fields)

    def _unavailable(self) -> Callable[[ConsentError], Decision] | None:
        return shapes.unavailable if self._settings.on_unavailable == "deny" else None

    def check(self, name: str, principal_id: str, purpose: str, min_seq: int | None) -> Operation[Decision]:
        checks_of.check_check(name, principal_id, purpose, min_seq)
        body = {"principalId": principal_id, "purpose": purpose, "minSeq": min_seq}
        call = self._post(name, "/v1/consent/can-process", body, principal_id)
        return Operation(call, _reading(shapes.read_decision), self._unavailable())

    def fetch_keys(self, method: str) -> Operation[StateKeySet]:
        return Operation(self._get(method, "/v1/consent/state-keys"), _reading(shapes.read_state_keys))

    def refresh(self, method: str, state: SignedState, gpc: bool) -> Operation[RefreshedState]:
        body = {"state": state.text, "gpc": gpc or None}
        call = self._post(method, "/v1/consent/state/refresh", body, state.text)
        return Operation(call, _reading(shapes.read_refreshed))

    def check_purposes(
        self, method: str, principal_id: str, purposes: Sequence[str]
    ) -> Operation[list[Decision]]:
        return self.check_many([(principal_id, purpose) for purpose in purposes], name=method)

    def check_many(
        self, checks: Sequence[tuple[str, str]], *, name: str = "can_process_many"
    ) -> Operation[list[Decision]]:
        checks_of.check_batch(name, checks)
        items = [
            {"id": str(i), "principalId": principal_id, "purpose": purpose}
            for i, (principal_id, purpose) in enumerate(checks)
        ]
        principals = {principal_id for principal_id, _ in checks}
        call = self._post(name, "/v1/consent/can-process/batch", {"checks": items}, *principals)
        deny = self._unavailable()

        def read(answer: Answer, course: Course) -> list[Decision] | None:
            found = shapes.read_batch(parse_json(answer.body))
            if found is None:
                return None
            decisions = [found.get(str(i)) for i in range(len(checks))]
            if deny is None:
                whole = [decision for decision in decisions if decision is not None]
                return whole if len(whole) == len(decisions) else None
            return [deny(course.malformed(answer)) if one is None else one for one in decisions]

        denied = None if deny is None else lambda error: [deny(error) for _ in checks]
        return Operation(call, read, denied)

    def write(
        self,
        name: WriteName,
        principal_id: str,
        purposes: Sequence[str],
        *,
        policy_version: int | None,
        gpc: bool | None,
        over_gpc: bool | None,
        idempotency_key: str | None,
    ) -> Operation[WriteResult]:
        checks_of.check_write(name, principal_id, purposes)
        key = str(uuid.uuid4()) if idempotency_key is None else idempotency_key
        checks_of.check_idempotency_key(name, key)
        body = {
            "principalId": principal_id,
            "purposes": list(purposes),
            "policyVersion": policy_version,
            "gpc": gpc,
            "overGpc": over_gpc,
        }
        fields = {"statuses": (201,), "seconds": self._settings.write_timeout, "idempotency_key": key}
        call = self._post(name, f"/v1/consent/{name}", body, principal_id, **fields)
        return Operation(call, _reading(shapes.read_write))

    def state(self, principal_id: str) -> Operation[ConsentState]:
        checks_of.check_principal("state", principal_id)
        call = self._post("state", "/v1/consent/state", {"principalId": principal_id}, principal_id)
        return Operation(call, _reading(shapes.read_state))

    def history(self, principal_id: str, cursor: str | None, limit: int | None) -> Operation[History]:
        checks_of.check_principal("history", principal_id)
        body = {"principalId": principal_id, "cursor": cursor, "limit": limit}
        call = self._post("history", "/v1/consent/history", body, principal_id)
        return Operation(call, _reading(shapes.read_history))

    def session(self, principal_id: str) -> Operation[Session]:
        name = "sessions.create"
        checks_of.check_principal(name, principal_id)
        fields = {"statuses": (201,), "seconds": self._settings.write_timeout}
        call = self._post(name, "/v1/sessions", {"principalId": principal_id}, principal_id, **fields)
        return Operation(call, _reading(shapes.read_session))

    def receipt(self, seq: int) -> Operation[Receipt]:
        checks_of.check_seq("receipt", seq)
        return Operation(self._get("receipt", f"/v1/consent/receipts/{seq}"), _reading(shapes.read_receipt))

    def proof(self, seq: int) -> Operation[str]:
        checks_of.check_seq("proof", seq)
        call = self._get("proof", f"/v1/consent/proofs/{seq}", accept="text/plain")
        return Operation(call, lambda answer, _course: _text_of(answer))

    def decision(self, request_id: str) -> Operation[Verdict]:
        checks_of.check_request_id("decision", request_id)
        call = self._get("decision", f"/v1/decisions/{request_id}")
        return Operation(call, _reading(lambda value: shapes.read_verdict(value, request_id)))

    def report_outcome(self, request_id: str, outcome: str, at: str | None) -> Operation[ReportedOutcome]:
        name = "report_outcome"
        checks_of.check_report(name, request_id, outcome)
        fields = {"statuses": (200, 201), "seconds": self._settings.write_timeout}
        path = f"/v1/decisions/{request_id}/outcome"
        call = self._post(name, path, {"outcome": outcome, "at": at}, **fields)
        return Operation(call, _reading(lambda value: shapes.read_outcome(value, request_id, outcome)))

    def ping(self) -> Operation[Health]:
        return Operation(self._get("ping", "/healthz", authorized=False), _reading(shapes.read_health))


def _text_of(answer: Answer) -> str | None:
    try:
        return None if answer.body is None else answer.body.decode("utf-8")
    except UnicodeDecodeError:
        return None
