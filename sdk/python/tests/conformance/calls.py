"""Translates the cases to Python and back. An unknown name raises KeyError."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import datetime
from typing import Any

from gpd_consent import (
    AsyncConsentClient,
    Check,
    ConsentClient,
    ConsentError,
    Verdict,
    sign_webhook,
    verify_consistency,
    verify_proof,
    verify_webhook,
)
from gpd_consent.fake import AsyncFakeConsent, FakeConsent

Client = ConsentClient | AsyncConsentClient | FakeConsent | AsyncFakeConsent

_METHODS = {
    "isAllowed": "is_allowed",
    "canProcess": "can_process",
    "canProcessMany": "can_process_many",
    "grant": "grant",
    "deny": "deny",
    "withdraw": "withdraw",
    "state": "state",
    "history": "history",
    "receipt": "receipt",
    "proof": "proof",
    "decision": "decision",
    "checkout": "checkout",
    "reportOutcome": "report_outcome",
    "readState": "read_state",
    "currentState": "current_state",
    "ping": "ping",
    "fake.setUnavailable": "set_unavailable",
    "fake.setNextError": "set_next_error",
    "fake.setTtlDays": "set_ttl_days",
    "fake.setPurposes": "set_purposes",
    "fake.setDecision": "set_decision",
    "agent": "agent",
    "join": "join",
    "link": "link",
    "erase": "erase",
    "purposes": "purposes",
    "savePurposes": "save_purposes",
    "policies": "policies",
    "publishPolicy": "publish_policy",
    "checkpoint": "checkpoint",
    "vkey": "vkey",
    "exportLog": "export_log",
    "close": "close",
}
_NAMES = {
    "principalId": "principal_id",
    "minSeq": "min_seq",
    "policyVersion": "policy_version",
    "requestId": "request_id",
    "idempotencyKey": "idempotency_key",
    "overGpc": "over_gpc",
    "toleranceSeconds": "tolerance_seconds",
    "onUnavailable": "on_unavailable",
    "cookieDomain": "cookie_domain",
    "cookie": "cookie_header",
    "minWitnesses": "min_witnesses",
    "witnesses": "witnesses",
    "principalSecret": "principal_secret",
    **{name: name for name in ("session", "token", "material", "text", "secret", "id")},
    "proof": "text",
    **{name: name for name in ("purpose", "purposes", "gpc", "cursor", "limit", "seq", "hash", "type")},
    **{name: name for name in ("outcome", "at")},
    **{name: name for name in ("unavailable", "kind", "code", "days", "context")},
    "class": "class_",
    "suspectScore": "suspect_score",
    **{name: name for name in ("oldSize", "oldRoot", "newSize", "newRoot")},
    **{
        name: name
        for name in ("vkey", "body", "headers", "secrets", "now", "retries", "url", "key", "method")
    },
}
_MILLISECONDS = {"deadlineMs": "deadline", "timeoutMs": "timeout", "writeTimeoutMs": "write_timeout"}


def to_python(words: dict[str, Any]) -> dict[str, Any]:
    """Returns arguments and options by keyword."""
    named: dict[str, Any] = {}
    for name, value in words.items():
        if name in _MILLISECONDS:
            named[_MILLISECONDS[name]] = value / 1000
        elif name == "checks":
            named["checks"] = [Check(**to_python(check)) for check in value]
        else:
            named[_NAMES[name]] = value
    return named


def _verify_consistency(**words: Any) -> None:
    verify_consistency(words["oldSize"], words["oldRoot"], words["newSize"], words["newRoot"], words["text"])


def _all_of(events: Any) -> Any:
    async def collect() -> list[Any]:
        return [event async for event in events]

    return collect() if hasattr(events, "__aiter__") else list(events)


def call_of(name: str, client: Client | None) -> Callable[..., Any]:
    if name == "verifyProof":
        return verify_proof
    if name == "verifyConsistency":
        return _verify_consistency
    if name == "verifyWebhook":
        return verify_webhook
    if name == "signWebhook":
        return sign_webhook
    assert client is not None, "this case has no client"
    if name == "sessions.create":
        return client.sessions.create
    if name == "agent":
        return lambda body=None, timeout=None, **request: client.agent(
            request, body=None if body is None else body.encode(), timeout=timeout
        )
    if name == "may":
        return lambda headers, purposes, **options: client.may(headers, purposes, **options)
    if name == "historyAll":
        return lambda **words: _all_of(client.history_all(**words))
    method: Callable[..., Any] = getattr(client, _METHODS[name])
    return method


def _camel(name: str) -> str:
    first, *more = name.rstrip("_").split("_")
    return first + "".join(part.capitalize() for part in more)


def to_wire(value: Any) -> Any:
    """Converts a result to the JSON of the wire, where a denial has no error."""
    if isinstance(value, ConsentError):
        return None
    if isinstance(value, Verdict):
        told = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        del told["raw"]
        return {_camel(name): to_wire(inner) for name, inner in told.items()}
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return {_camel(field.name): to_wire(getattr(value, field.name)) for field in fields}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        return [to_wire(item) for item in value]
    return value
