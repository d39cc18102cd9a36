"""Checks the shape of answers. Readers return None for a malformed answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from ._errors import ConsentError
from ._json import JsonObject, is_integer, is_object, is_seq
from ._state_cookie import SignedState, parse_state
from ._types import (
    ConsentState,
    Decision,
    Health,
    History,
    HistoryEvent,
    ProofRef,
    PurposeState,
    Receipt,
    ReportedOutcome,
    Session,
    Verdict,
    WriteEntry,
    WriteResult,
)

T = TypeVar("T")

_HASH = re.compile(r"[0-9a-f]{64}")


def _is_text(*values: object) -> bool:
    return all(isinstance(value, str) for value in values)


def _is_text_or_none(*values: object) -> bool:
    return all(value is None or isinstance(value, str) for value in values)


def _is_number_or_none(value: object) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and _HASH.fullmatch(value) is not None


def _all(values: object, read: Callable[[object], T | None]) -> tuple[T, ...] | None:
    """Returns None if one of them is malformed."""
    if not isinstance(values, list):
        return None
    found = [item for item in map(read, values) if item is not None]
    return tuple(found) if len(found) == len(values) else None


def _read_proof(value: object) -> ProofRef | None:
    if not is_object(value):
        return None
    seq, digest = value.get("seq"), value.get("hash")
    return ProofRef(seq, value["hash"]) if is_seq(seq) and _is_hash(digest) else None


def read_decision(value: object) -> Decision | None:
    """`allowed` must be a JSON boolean; any other value makes the decision malformed."""
    if not is_object(value):
        return None
    allowed, reason = value.get("allowed"), value.get("reason")
    version, expires = value.get("policyVersion"), value.get("expiresAt")
    given = value.get("given", "unknown")
    proof = _read_proof(value.get("proof"))
    if not isinstance(allowed, bool) or not isinstance(reason, str) or proof is None:
        return None
    if (version is not None and not is_integer(version)) or not _is_text_or_none(expires):
        return None
    return Decision(allowed, reason, proof, version, expires, None, given) if isinstance(given, str) else None


def unavailable(error: ConsentError) -> Decision:
    """The denial of a check that could not be decided."""
    return Decision(False, "unavailable", None, None, None, error)


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


def _read_entry(value: object) -> WriteEntry | None:
    proof = _read_proof(value)
    if proof is None or not is_object(value) or not _is_text(value.get("purpose")):
        return None
    return WriteEntry(value["purpose"], proof.seq, proof.hash)


def read_write(value: object) -> WriteResult | None:
    last = _read_proof(value)
    entries = _all(value.get("entries"), _read_entry) if is_object(value) else None
    return None if last is None or entries is None else WriteResult(entries, last.seq, last.hash)


def _read_purpose(value: object) -> PurposeState | None:
    decision = read_decision(value)
    if decision is None or decision.proof is None or not is_object(value):
        return None
    purpose, choice, at = value.get("purpose"), value.get("choice"), value.get("at")
    if not isinstance(purpose, str) or not _is_text_or_none(choice, at):
        return None
    return PurposeState(
        purpose,
        choice,
        at,
        decision.allowed,
        decision.reason,
        decision.proof,
        decision.policy_version,
        decision.expires_at,
        decision.given,
    )


def read_state(value: object) -> ConsentState | None:
    if not is_object(value) or not _is_text(value.get("principalId")):
        return None
    purposes = _all(value.get("purposes"), _read_purpose)
    return None if purposes is None else ConsentState(value["principalId"], purposes)


def _read_event(value: object) -> HistoryEvent | None:
    if not is_object(value) or not is_seq(value.get("seq")) or not _is_text(value.get("type")):
        return None
    version, gpc = value.get("policyVersion"), value.get("gpc")
    texts = [value.get(name) for name in ("purpose", "time", "source", "expiresAt")]
    if (version is not None and not is_integer(version)) or not _is_text_or_none(*texts):
        return None
    if gpc is not None and not isinstance(gpc, bool):
        return None
    purpose, time, source, expires = texts
    over = value.get("overGpc") is True
    return HistoryEvent(value["seq"], value["type"], purpose, time, version, gpc, source, expires, over)


def read_history(value: object) -> History | None:
    if not is_object(value) or not _is_text(value.get("principalId")):
        return None
    events, cursor = _all(value.get("events"), _read_event), value.get("nextCursor")
    if events is None or not _is_text_or_none(cursor):
        return None
    return History(value["principalId"], events, cursor)


def read_session(value: object) -> Session | None:
    if not is_object(value):
        return None
    token, principal_id, expires_at = (value.get(name) for name in ("token", "principalId", "expiresAt"))
    if not isinstance(token, str) or not isinstance(principal_id, str) or not isinstance(expires_at, str):
        return None
    return Session(token, principal_id, expires_at)


def read_receipt(value: object) -> Receipt | None:
    if not is_object(value) or not is_object(value.get("receipt")) or not is_object(value.get("jwk")):
        return None
    return Receipt(value["receipt"], value["jws"], value["jwk"]) if _is_text(value.get("jws")) else None


def _read_rule(value: object) -> JsonObject | None:
    return value if is_object(value) else None


def read_verdict(value: object, request_id: str) -> Verdict | None:
    """Refuses the verdict of another request."""
    if not is_object(value) or value.get("requestId") != request_id:
        return None
    texts = [value.get(name) for name in ("class", "reason", "decidedAt")]
    restricted: Any = value.get("restricted")
    optional = [value.get(name) for name in ("visitorId", "policyVersion")]
    numbers = [value.get(name) for name in ("confidence", "suspectScore")]
    rules = _all(value.get("rules", []), _read_rule)
    if not _is_text(*texts) or not isinstance(restricted, bool) or not _is_text_or_none(*optional):
        return None
    if rules is None or not all(map(_is_number_or_none, numbers)):
        return None
    return Verdict(
        request_id=request_id,
        class_=value["class"],
        reason=value["reason"],
        decided_at=value["decidedAt"],
        restricted=restricted,
        visitor_id=value.get("visitorId"),
        confidence=value.get("confidence"),
        suspect_score=value.get("suspectScore"),
        rules=rules,
        policy_version=value.get("policyVersion"),
        raw=value,
        attested=value["attested"] if is_object(value.get("attested")) else None,
    )


def read_outcome(value: object, request_id: str, outcome: str) -> ReportedOutcome | None:
    """Refuses an outcome that differs from the report."""
    if not is_object(value) or (value.get("requestId"), value.get("outcome")) != (request_id, outcome):
        return None
    return ReportedOutcome(request_id, outcome, value["at"]) if _is_text(value.get("at")) else None


@dataclass(frozen=True, slots=True)
class StateKeySet:
    """The keys of `GET /v1/consent/state-keys` for ES256, and the tenant of the API key."""

    tenant: str
    keys: tuple[tuple[str, str, str], ...]
    """kid, x and y."""


@dataclass(frozen=True, slots=True)
class RefreshedState:
    signed: SignedState
    purposes: tuple[str, ...]
    seq: int


def _is_state_key(value: object) -> bool:
    if not is_object(value) or not all(_is_text(value.get(name)) for name in ("kid", "x", "y")):
        return False
    is_p256 = value.get("kty") == "EC" and value.get("crv") == "P-256"
    return is_p256 and value.get("alg", "ES256") == "ES256" and value.get("use", "sig") == "sig"


def read_state_keys(value: object) -> StateKeySet | None:
    """Keys of other kinds are passed over."""
    if not is_object(value) or not _is_text(value.get("tenant")) or not isinstance(value.get("keys"), list):
        return None
    keys = [(key["kid"], key["x"], key["y"]) for key in value["keys"] if _is_state_key(key)]
    return StateKeySet(value["tenant"], tuple(keys))


def read_refreshed(value: object) -> RefreshedState | None:
    if not is_object(value):
        return None
    signed, purposes, seq = parse_state(value.get("state")), value.get("purposes"), value.get("seq")
    if (
        signed is None
        or not isinstance(purposes, list)
        or not all(map(_is_text, purposes))
        or not is_seq(seq)
    ):
        return None
    return RefreshedState(signed, tuple(purposes), seq)


def read_health(value: object) -> Health | None:
    if not is_object(value) or value.get("status") != "ok" or not _is_text(value.get("version")):
        return None
    return Health("ok", value["version"])
