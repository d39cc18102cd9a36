"""The events that the fake stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ._errors import ConsentError
from ._types import Decision, History, HistoryEvent, ProofRef, PurposeState, ReportedOutcome

Choice = Literal["granted", "denied", "withdrawn"]

GENESIS = ProofRef(0, "0" * 64)
TIME = "2026-01-01T00:00:00.000Z"
"""A fixed time, so that no test depends on the date."""


@dataclass(frozen=True, slots=True)
class Event:
    principal_id: str
    purpose: str
    choice: Choice
    policy_version: int
    gpc: bool
    proof: ProofRef
    over_gpc: bool = False


def judge(events: list[Event], principal_id: str, purpose: str) -> Decision:
    for event in reversed(events):
        if event.principal_id == principal_id and event.purpose == purpose:
            return Decision(event.choice == "granted", event.choice, event.proof, event.policy_version, None)
    return Decision(False, "never-asked", events[-1].proof if events else GENESIS, 0, None)


def state_of(event: Event) -> PurposeState:
    return PurposeState(
        purpose=event.purpose,
        choice=event.choice,
        at=TIME,
        allowed=event.choice == "granted",
        reason=event.choice,
        proof=event.proof,
        policy_version=event.policy_version,
        expires_at=None,
    )


def _told(event: Event) -> HistoryEvent:
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


def history_of(events: list[Event], principal_id: str, cursor: str | None, limit: int | None) -> History:
    """Returns the events before the cursor, newest first."""
    before = len(events) + 1 if cursor is None else int(cursor)
    found = [one for one in reversed(events) if one.principal_id == principal_id and one.proof.seq < before]
    page = found[: 50 if limit is None else limit]
    cursor_after = str(page[-1].proof.seq) if page and len(found) > len(page) else None
    return History(principal_id, tuple(map(_told, page)), cursor_after)


def store_outcome(
    stored: dict[str, ReportedOutcome], request_id: str, outcome: str, at: str | None
) -> ReportedOutcome:
    """Keeps the first report; times are compared as texts."""
    first = ReportedOutcome(request_id, outcome, TIME if at is None else at)
    first_report = stored.setdefault(request_id, first)
    if first_report.outcome != outcome or (at is not None and first_report.at != at):
        raise ConsentError("report_outcome", "conflict", code="idempotency-conflict", status=409)
    return first_report
