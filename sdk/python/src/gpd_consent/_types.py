"""Arguments and results of the client, with the names of the wire (SPEC.md section 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from ._errors import ConsentError
from ._wire import ProofRef


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


class Check(NamedTuple):
    """One check of a batch; a plain pair works too."""

    principal_id: str
    purpose: str


@dataclass(frozen=True, slots=True)
class Decision:
    allowed: bool
    reason: str
    """A reason that the README lists, or one of a newer server."""
    proof: ProofRef | None
    """None only if the SDK denied because the check could not be decided."""
    policy_version: int | None
    expires_at: str | None
    """ISO time, or None for never."""
    error: ConsentError | None = None
    """The reason why the check could not be decided; set exactly if the SDK itself answered `unavailable`."""
    given: str = "unknown"
    """Origin of the grant behind the decision: `person`, `agent`, `automation` or `unknown`."""
    subject: str | None = None
    """The reference of the person that the events `subject.erased` and `subject.linked` carry."""

    @property
    def expires(self) -> datetime | None:
        return _time(self.expires_at)

    def __bool__(self) -> bool:
        """True only for an allowing decision: by default every object is true, even a denial."""
        return self.allowed


@dataclass(frozen=True, slots=True)
class WriteEntry:
    purpose: str
    seq: int
    hash: str


@dataclass(frozen=True, slots=True)
class WriteResult:
    """One entry per purpose. `seq` and `hash` of the result are those of the last entry."""

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

    @property
    def expires(self) -> datetime | None:
        return _time(self.expires_at)


@dataclass(frozen=True, slots=True)
class ConsentState:
    principal_id: str
    purposes: tuple[PurposeState, ...]
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    seq: int
    type: str
    purpose: str
    time: str
    policy_version: int | None
    gpc: bool
    source: str
    expires_at: str | None
    over_gpc: bool = False
    """True if the person agreed despite the signal."""

    @property
    def expires(self) -> datetime | None:
        return _time(self.expires_at)

    @property
    def happened(self) -> datetime:
        """`time` as a time."""
        return datetime.fromisoformat(self.time)


@dataclass(frozen=True, slots=True)
class History:
    principal_id: str
    events: tuple[HistoryEvent, ...]
    """Newest first."""
    next_cursor: str | None
    """Requests the next page; None on the last."""


@dataclass(frozen=True, slots=True)
class Session:
    token: str = field(repr=False)
    principal_id: str
    expires_at: str
    subject: str | None = None
    """The reference that the events `subject.erased` and `subject.linked` carry."""

    @property
    def expires(self) -> datetime:
        return datetime.fromisoformat(self.expires_at)


@dataclass(frozen=True, slots=True)
class Receipt:
    receipt: Mapping[str, Any]
    jws: str
    """Compact JWS over the receipt, EdDSA under the key of the tenant's log."""
    jwk: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of a visit."""

    request_id: str
    class_: str
    """`human`, `declared_agent`, `undeclared_automation`, `unknown`, or a class of a newer server."""
    reason: str
    decided_at: str
    restricted: bool
    """A contest is open: do not act on this verdict."""
    visitor_id: str | None = None
    confidence: float | None = None
    suspect_score: float | None = None
    rules: tuple[Mapping[str, Any], ...] = ()
    """Rules that fired: `id`, `weight`, `text`."""
    policy_version: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """The whole answer of the server, with fields that this version does not know."""
    attested: Mapping[str, Any] | None = None
    """`by` and `deviceBound`, where a passkey distinguished the device from identical ones."""
    ref: str | None = None
    """The reference that the event `decision.erased` carries."""
    context: str | None = None
    """The reason of this visit, as the page named it in `identify({ context })`, such as an order."""


@dataclass(frozen=True, slots=True)
class ReportedOutcome:
    """The stored outcome of a decision."""

    request_id: str
    outcome: str
    """`fraud`, `chargeback`, `passed-step-up`, `false-alarm` or `other`."""
    at: str
    """ISO time when the outcome became known."""


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """Who signed a request."""

    status: str
    """`verified`, `invalid`, `unverified` or `none`."""
    agent: str | None = None
    """The identity, a URL; None unless the status is `verified`."""
    keyid: str | None = None
    tag: str | None = None
    intent: str | None = None
    """`browse` or `pay`, where the tag says so."""
    expires: float | None = None
    """End of the signature, in seconds since the epoch."""
    reason: str | None = None
    """A code of the list in gpd's documentation, or `unavailable`. Do not tell the agent."""
    error: ConsentError | None = None
    """The reason why gpd could not be asked; None for an answer of gpd."""


@dataclass(frozen=True, slots=True)
class VisitorState:
    """A visitor's choices, read from the cookie `gpd_consent`."""

    purposes: tuple[str, ...]
    """The purposes that were granted."""
    seq: int
    """The newest entry of the log about this person."""
    at: str
    """ISO time when gpd signed it."""


@dataclass(frozen=True, slots=True)
class CurrentState:
    """Without a valid state `purposes` is empty, and `seq` and `at` are None."""

    purposes: tuple[str, ...]
    seq: int | None
    at: str | None
    set_cookie: str | None
    """Value of a Set-Cookie header to send with the page, or None."""


@dataclass(frozen=True, slots=True)
class Permissions:
    """The purposes that are allowed for one request."""

    purposes: tuple[str, ...]
    """The allowed purposes, in the order of the question."""
    set_cookie: str | None
    """Value of a Set-Cookie header to send with the page, or None."""

    def allows(self, purpose: str) -> bool:
        """False for a purpose that `may` was not asked about."""
        return purpose in self.purposes

    def __bool__(self) -> bool:
        # By default every object is true, so a condition on it would allow everything.
        raise TypeError("ask permissions.allows(purpose)")


@dataclass(frozen=True, slots=True)
class Health:
    status: str
    version: str


@dataclass(frozen=True, slots=True)
class Cosigner:
    name: str
    time: int
    """Epoch seconds; then it knew no larger tree of the log."""


@dataclass(frozen=True, slots=True)
class ProvenEntry:
    seq: int
    hash: str
    entry: Mapping[str, Any]
    """The entry itself; `subject` and `body` of a personal one are commitments."""
    origin: str
    """The log's name."""
    size: int
    """Size of the log that the checkpoint signs."""
    root: str
    witnesses: tuple[Cosigner, ...] = ()
    """The `witnesses` that have cosigned."""


@dataclass(frozen=True, slots=True)
class WebhookEvent:
    id: str
    """Equal for every delivery of one event."""
    type: str
    timestamp: str
    seq: int
    data: Mapping[str, Any]
