"""What the fake remembers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ._types import HistoryEvent, ProofRef, PurposeState

Choice = Literal["granted", "denied", "withdrawn"]

GENESIS = ProofRef(0, "0" * 64)
TIME = "2026-01-01T00:00:00.000Z"
"""Nothing in a test depends on the day."""


@dataclass(frozen=True, slots=True)
class Event:
    principal_id: str
    purpose: str
    choice: Choice
    policy_version: int
    gpc: bool
    proof: ProofRef
    over_gpc: bool = False


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


def history_of(event: Event) -> HistoryEvent:
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
