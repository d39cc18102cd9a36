"""Choices, Global Privacy Control and Idempotency-Keys of a fake, by the rules of the server."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from ._errors import ConsentError
from ._types import (
    ConsentState,
    Decision,
    History,
    HistoryEvent,
    ProofRef,
    PurposeState,
    ReportedOutcome,
    WriteEntry,
    WriteResult,
)

WriteMethod = Literal["grant", "deny", "withdraw"]
GpcPolicy = Literal["opt-out", "ask", "ignore"]
"""Effect of Global Privacy Control on a purpose."""

_CHOICE_OF: dict[WriteMethod, str] = {"grant": "granted", "deny": "denied", "withdraw": "withdrawn"}
_GENESIS = ProofRef(0, "0" * 64)
TIME = "2026-01-01T00:00:00.000Z"
"""A fixed time, so that no test depends on the date."""


@dataclass(frozen=True, slots=True)
class Write:
    method: WriteMethod
    principal_id: str
    purposes: tuple[str, ...]
    policy_version: int | None
    gpc: bool | None
    over_gpc: bool | None


@dataclass(frozen=True, slots=True)
class _Event:
    principal_id: str
    purpose: str
    choice: str
    policy_version: int
    gpc: bool
    proof: ProofRef
    over_gpc: bool


class FakeLog:
    def __init__(self) -> None:
        self._events: list[_Event] = []
        self._policies: dict[str, GpcPolicy] = {}
        self._signals: dict[str, set[str]] = {}
        """The principals with a GPC signal, and the purposes that each granted without it since."""
        self._answers: dict[str, tuple[Write, WriteResult]] = {}

    def set_gpc_policy(self, purpose: str, policy: GpcPolicy) -> None:
        self._policies[purpose] = policy

    def write(self, write: Write, idempotency_key: str | None) -> WriteResult:
        self._check_over_gpc(write)
        if idempotency_key is not None and idempotency_key in self._answers:
            known, answer = self._answers[idempotency_key]
            if known != write:
                raise _refusal(write.method, "idempotency-conflict", 409)
            return answer
        self._apply_signal(write)
        entries = tuple(self._append(write, purpose) for purpose in write.purposes)
        result = WriteResult(entries, entries[-1].seq, entries[-1].hash)
        if idempotency_key is not None:
            self._answers[idempotency_key] = (write, result)
        return result

    def _check_over_gpc(self, write: Write) -> None:
        if not write.over_gpc:
            return
        if write.gpc is not True or len(write.purposes) != 1:
            raise _refusal(write.method, "invalid-request", 400)
        if self._policy_of(write.purposes[0]) != "ask":
            raise _refusal(write.method, "unknown-purpose", 422)

    def _apply_signal(self, write: Write) -> None:
        if write.gpc is True:
            self._signals[write.principal_id] = set()
        elif write.gpc is False and write.method == "grant" and write.principal_id in self._signals:
            self._signals[write.principal_id].update(write.purposes)

    def _append(self, write: Write, purpose: str) -> WriteEntry:
        seq = len(self._events) + 1
        proof = ProofRef(seq, hashlib.sha256(f"fake entry {seq}".encode()).hexdigest())
        is_signal = write.method == "deny" and write.gpc is True and self._policy_of(purpose) != "ignore"
        event = _Event(
            principal_id=write.principal_id,
            purpose=purpose,
            choice="gpc-opt-out" if is_signal else _CHOICE_OF[write.method],
            policy_version=write.policy_version or 0,
            gpc=self._is_opted_out(write.principal_id, purpose),
            proof=proof,
            over_gpc=write.over_gpc is True,
        )
        self._events.append(event)
        return WriteEntry(purpose, proof.seq, proof.hash)

    def _policy_of(self, purpose: str) -> GpcPolicy:
        return self._policies.get(purpose, "opt-out")

    def _is_opted_out(self, principal_id: str, purpose: str) -> bool:
        return principal_id in self._signals and purpose not in self._signals[principal_id]

    def _last_of(self, principal_id: str, purpose: str) -> _Event | None:
        for event in reversed(self._events):
            if event.principal_id == principal_id and event.purpose == purpose:
                return event
        return None

    def _is_overruled_by_gpc(self, purpose: str, last: _Event | None) -> bool:
        """True if a signal ends this choice: it heeds the signal, and was not made despite it."""
        policy = self._policy_of(purpose)
        return policy != "ignore" and not (policy == "ask" and last is not None and last.over_gpc)

    def _reason_of(self, principal_id: str, purpose: str, last: _Event | None) -> str:
        if self._is_opted_out(principal_id, purpose) and self._is_overruled_by_gpc(purpose, last):
            return "gpc-opt-out"
        return "never-asked" if last is None or last.choice == "gpc-opt-out" else last.choice

    def _decide(self, principal_id: str, purpose: str) -> tuple[str, ProofRef, int]:
        last = self._last_of(principal_id, purpose)
        reason = self._reason_of(principal_id, purpose, last)
        if last is not None and reason != "never-asked":
            return reason, last.proof, last.policy_version
        return reason, self._events[-1].proof if self._events else _GENESIS, 0

    def decide(self, principal_id: str, purpose: str) -> Decision:
        reason, proof, policy_version = self._decide(principal_id, purpose)
        return Decision(reason == "granted", reason, proof, policy_version, None)

    def state(self, principal_id: str) -> ConsentState:
        last = {event.purpose: event for event in self._events if event.principal_id == principal_id}
        return ConsentState(principal_id, tuple(map(self._state_of, last.values())))

    def _state_of(self, event: _Event) -> PurposeState:
        reason, proof, policy_version = self._decide(event.principal_id, event.purpose)
        return PurposeState(
            purpose=event.purpose,
            choice=event.choice,
            at=TIME,
            allowed=reason == "granted",
            reason=reason,
            proof=proof,
            policy_version=policy_version,
            expires_at=None,
        )

    def visitor_state(self, principal_id: str, *, gpc: bool) -> tuple[tuple[str, ...], int]:
        """Returns what this person's cookie says; `gpc`: under a signal of this request."""
        last = {event.purpose: event for event in self._events if event.principal_id == principal_id}
        allowed = tuple(
            purpose
            for purpose, event in last.items()
            if self._decide(principal_id, purpose)[0] == "granted"
            and not (gpc and self._is_overruled_by_gpc(purpose, event))
        )
        return allowed, max((event.proof.seq for event in last.values()), default=0)

    def history(self, principal_id: str, cursor: str | None, limit: int | None) -> History:
        """Returns the events before the cursor, newest first."""
        before = len(self._events) + 1 if cursor is None else int(cursor)
        found = [
            one
            for one in reversed(self._events)
            if one.principal_id == principal_id and one.proof.seq < before
        ]
        page = found[: 50 if limit is None else limit]
        cursor_after = str(page[-1].proof.seq) if page and len(found) > len(page) else None
        return History(principal_id, tuple(map(_told, page)), cursor_after)


def _refusal(method: str, code: str, status: int) -> ConsentError:
    kind: Literal["conflict", "invalid-request"] = "conflict" if status == 409 else "invalid-request"
    return ConsentError(method, kind, code=code, status=status)


def _told(event: _Event) -> HistoryEvent:
    return HistoryEvent(
        seq=event.proof.seq,
        type=f"consent.{event.choice}",
        purpose=event.purpose,
        time=TIME,
        policy_version=event.policy_version,
        gpc=event.gpc,
        source="backend",
        expires_at=None,
        over_gpc=event.over_gpc,
    )


def store_outcome(
    stored: dict[str, ReportedOutcome], request_id: str, outcome: str, at: str | None
) -> ReportedOutcome:
    """Keeps the first report; times are compared as texts."""
    first = ReportedOutcome(request_id, outcome, TIME if at is None else at)
    first_report = stored.setdefault(request_id, first)
    if first_report.outcome != outcome or (at is not None and first_report.at != at):
        raise ConsentError("report_outcome", "conflict", code="idempotency-conflict", status=409)
    return first_report
