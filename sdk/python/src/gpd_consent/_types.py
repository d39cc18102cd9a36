"""What goes in and comes out, in the words of the wire (SPEC.md section 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ._errors import ConsentError


class Check(NamedTuple):
    """One question of a batch; a plain pair is one too."""

    principal_id: str
    purpose: str


@dataclass(frozen=True, slots=True)
class ProofRef:
    """The place of an entry in the tenant's log."""

    seq: int
    hash: str
    """64 lower-case hex digits: SHA-256(0x00 || entry)."""


@dataclass(frozen=True, slots=True)
class Decision:
    allowed: bool
    reason: str
    """One that the README names, or that of a later server."""
    proof: ProofRef | None
    """None only when the SDK denied because nothing could be decided."""
    policy_version: int | None
    expires_at: str | None
    """ISO time, or None for never."""
    error: ConsentError | None = None
    """Why nothing could be decided: set exactly when the SDK itself said `unavailable`."""
    given: str = "unknown"
    """Who gave the grant that it rests on: `person`, `agent`, `automation` or `unknown`."""

    def __bool__(self) -> bool:
        """An object is true by default: here a denial must not be."""
        return self.allowed


@dataclass(frozen=True, slots=True)
class WriteEntry:
    purpose: str
    seq: int
    hash: str


@dataclass(frozen=True, slots=True)
class WriteResult:
    """One entry a purpose; `seq` and `hash` beside are the last one's."""

    entries: tuple[WriteEntry, ...]
    seq: int
    hash: str


@dataclass(frozen=True, slots=True)
class PurposeState:
    purpose: str
    choice: str | None
    at: str | None
    allowed: bool
    reason: str
    proof: ProofRef
    policy_version: int | None
    expires_at: str | None
    given: str = "unknown"


@dataclass(frozen=True, slots=True)
class ConsentState:
    principal_id: str
    purposes: tuple[PurposeState, ...]


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    seq: int
    type: str
    purpose: str | None
    time: str | None
    policy_version: int | None
    gpc: bool | None
    source: str | None
    expires_at: str | None
    over_gpc: bool = False
    """The person overruled the signal."""


@dataclass(frozen=True, slots=True)
class History:
    principal_id: str
    events: tuple[HistoryEvent, ...]
    """Newest first."""
    next_cursor: str | None
    """For the next page; None on the last."""


@dataclass(frozen=True, slots=True)
class Session:
    token: str = field(repr=False)
    principal_id: str
    expires_at: str


@dataclass(frozen=True, slots=True)
class Receipt:
    receipt: Mapping[str, Any]
    jws: str
    """Compact JWS over the receipt, EdDSA under the key of the tenant's log."""
    jwk: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of one ingest."""

    request_id: str
    class_: str
    """`human`, `declared_agent`, `undeclared_automation`, `unknown`, or that of a later server."""
    reason: str
    decided_at: str
    restricted: bool
    """A contest is open: do not act on this verdict."""
    visitor_id: str | None = None
    confidence: float | None = None
    suspect_score: float | None = None
    rules: tuple[Mapping[str, Any], ...] = ()
    """Those that fired: `id`, `weight`, `text`."""
    policy_version: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """As the server told it, with fields that this version does not know."""
    attested: Mapping[str, Any] | None = None
    """`by` and `deviceBound`, where a passkey distinguished the device from identical ones."""


@dataclass(frozen=True, slots=True)
class ReportedOutcome:
    """What became of a decision, as it is stored."""

    request_id: str
    outcome: str
    """`fraud`, `chargeback`, `passed-step-up`, `false-alarm` or `other`."""
    at: str
    """When it became known: ISO time."""


@dataclass(frozen=True, slots=True)
class Health:
    status: str
    version: str


@dataclass(frozen=True, slots=True)
class Cosigner:
    name: str
    time: int
    """Epoch seconds at which it saw this tree as the longest of the log."""


@dataclass(frozen=True, slots=True)
class ProvenEntry:
    seq: int
    hash: str
    entry: Mapping[str, Any]
    """The entry itself; `subject` and `body` of a personal one are commitments."""
    origin: str
    """The log's name."""
    size: int
    """Of the log that the checkpoint signs."""
    root: str
    witnesses: tuple[Cosigner, ...] = ()
    """Which of the `witnesses` cosigned."""


@dataclass(frozen=True, slots=True)
class WebhookEvent:
    id: str
    """The same for every delivery of one event."""
    type: str
    timestamp: str
    seq: int
    data: Mapping[str, Any]
