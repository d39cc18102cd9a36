"""For each method, the call and the reader of its answer; clients and fakes differ only in the sender."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from . import _checks as checks_of
from . import _shapes as shapes
from ._course import Answer, Call
from ._errors import ConsentError, is_undecided
from ._json import parse_json
from ._options import Settings
from ._shapes import RefreshedState, StateKeySet
from ._state_cookie import SignedState
from ._types import AgentAnswer, Decision
from ._wire import OPERATIONS

T = TypeVar("T")

WriteName = Literal["grant", "deny", "withdraw"]


def _malformed(call: Call, answer: Answer) -> ConsentError:
    return ConsentError(
        call.name, "response", status=answer.status, request_id=answer.request_id, detail="body"
    )


@dataclass(frozen=True, slots=True, repr=False)
class Operation(Generic[T]):
    call: Call
    read: Callable[[Answer], T | None]
    """Returns None for a malformed answer."""
    on_error: Callable[[ConsentError], object] | None = None
    denied: Callable[[ConsentError], T] | None = None
    """Returns the denial that replaces an error, for checks only."""

    def conclude(self, outcome: Answer | ConsentError) -> T:
        """The only place where an error becomes a denial or is raised. Not called in an except block, because
        `__context__` would then keep an exception of httpx, which contains the request with its key."""
        if isinstance(outcome, Answer):
            value = self.read(outcome)
            if value is not None:
                return value
            outcome = _malformed(self.call, outcome)
        self._tell(outcome)
        if self.denied is not None and is_undecided(outcome):
            return self.denied(outcome)
        raise outcome

    def _tell(self, error: ConsentError) -> None:
        if self.on_error is None:
            return
        # A logger that fails must not change the outcome.
        with contextlib.suppress(Exception):
            self.on_error(error)


def call_of(
    name: str,
    operation: str,
    body: Mapping[str, Any] | None = None,
    *,
    params: Mapping[str, object] | None = None,
    token: str | None = None,
    idempotency_key: str | None = None,
    secrets: Sequence[str] = (),
) -> Call:
    """Leaves out missing values, which must not be sent as null. Refuses what is no JSON."""
    path = re.sub(r"\{(\w+)\}", lambda found: str((params or {})[found[1]]), OPERATIONS[operation].path)
    present = None if body is None else {key: value for key, value in body.items() if value is not None}
    try:
        json.dumps(present, allow_nan=False)
        is_json = True
    except (TypeError, ValueError):
        is_json = False
    if not is_json:
        raise ConsentError(name, "invalid-request", hint="an argument cannot be written as JSON")
    return Call(name, operation, path, present, token, idempotency_key, tuple(secrets))


class Operations:
    """The operations that are more than a call and its reader."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def of(self, call: Call, shape: Callable[[Any], T | None]) -> Operation[T]:
        return Operation(call, lambda answer: shape(parse_json(answer.body)), self._settings.on_error)

    def text(self, call: Call) -> Operation[str]:
        return Operation(call, _text_of, self._settings.on_error)

    def fetch_keys(self, method: str) -> Operation[StateKeySet]:
        return self.of(call_of(method, "stateKeys"), shapes.read_state_keys)

    def refresh(self, method: str, state: SignedState, gpc: bool) -> Operation[RefreshedState]:
        body = {"state": state.text, "gpc": True if gpc else None}
        return self.of(call_of(method, "refreshState", body, secrets=[state.text]), shapes.read_refreshed)

    def _unavailable(self) -> Callable[[ConsentError], Decision] | None:
        return shapes.unavailable if self._settings.on_unavailable == "deny" else None

    def check(self, name: str, principal_id: str, purpose: str, min_seq: int | None) -> Operation[Decision]:
        checks_of.check_check(name, principal_id, purpose, min_seq)
        body = {"principalId": principal_id, "purpose": purpose, "minSeq": min_seq}
        call = call_of(name, "canProcess", body, secrets=[principal_id])
        return Operation(
            call,
            lambda answer: shapes.read_decision(parse_json(answer.body)),
            self._settings.on_error,
            self._unavailable(),
        )

    def agent(self, described: Mapping[str, Any]) -> Operation[AgentAnswer]:
        denied = shapes.unasked if self._settings.on_unavailable == "deny" else None
        operation = self.of(call_of("agent", "agent", described), shapes.reader("agent", AgentAnswer))
        return dataclasses.replace(operation, denied=denied)

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
        call = call_of(name, "canProcessMany", {"checks": items}, secrets=list(principals))
        deny = self._unavailable()

        def read(answer: Answer) -> list[Decision] | None:
            found = shapes.read_batch(parse_json(answer.body))
            if found is None:
                return None
            decisions = [found.get(str(i)) for i in range(len(checks))]
            if deny is None:
                whole = [decision for decision in decisions if decision is not None]
                return whole if len(whole) == len(decisions) else None
            return [deny(_malformed(call, answer)) if one is None else one for one in decisions]

        denied = None if deny is None else lambda error: [deny(error) for _ in checks]
        return Operation(call, read, self._settings.on_error, denied)

    def write(
        self,
        name: WriteName,
        principal_id: str,
        purposes: Sequence[str],
        key: str | None,
        body: dict[str, Any],
    ) -> Call:
        checks_of.check_write(name, principal_id, purposes)
        key = str(uuid.uuid4()) if key is None else key
        checks_of.check_idempotency_key(name, key)
        whole = {"principalId": principal_id, "purposes": list(purposes), **body}
        return call_of(name, name, whole, idempotency_key=key, secrets=[principal_id])


def _text_of(answer: Answer) -> str | None:
    try:
        return None if answer.body is None else answer.body.decode("utf-8")
    except UnicodeDecodeError:
        return None
