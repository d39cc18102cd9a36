"""Fakes of the clients for your tests. They work in memory and allow only what was granted."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import httpx

from . import _checks as checks_of
from ._async_methods import AsyncConsent
from ._course import Answer, Call
from ._errors import ConsentError
from ._fake_log import FakeLog, GpcPolicy, refusal
from ._fake_signer import FakeSigner
from ._methods import Consent
from ._options import OnUnavailable, Settings, check_cookie_domain
from ._shapes import camel as _camel
from ._state_cookie import STATE_COOKIE, parse_state
from ._types import Verdict
from ._version import VERSION
from ._wire import KIND_OF_STATUS, ErrorKind

_STATUS_OF: dict[ErrorKind, int] = {
    **{kind: status for status, kind in KIND_OF_STATUS.items() if kind != "timeout"},
    "server": 500,
    "invalid-request": 400,
}


_NAMES = ("agent", "keyid", "tag", "intent", "expires", "reason")
_UNKNOWN = {**dict.fromkeys(_NAMES), "status": "unverified", "reason": "key-set-unknown"}


@dataclass(frozen=True, slots=True)
class FakeCall:
    method: str
    args: Mapping[str, Any]
    """Arguments by name, without those that were not passed."""


def _subject_of(principal_id: str) -> str:
    return hashlib.sha256(f"fake subject {principal_id}".encode()).hexdigest()


class _FakeServer:
    """Answers calls as a gpd would that holds what the fake was told."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.calls: list[FakeCall] = []
        self.log = FakeLog(clock)
        self.verdicts: dict[str, dict[str, Any]] = {}
        self.agent: dict[str, Any] = {**_UNKNOWN}
        self.is_unavailable = False
        self.next_error: tuple[ErrorKind, dict[str, Any]] | None = None
        self._clock = clock
        self._closed = False
        self._signer = FakeSigner()
        self._sessions: dict[str, str] = {}
        """Principals by the token of a session."""
        self._outcomes: dict[str, dict[str, Any]] = {}
        self._policies_list: list[dict[str, Any]] = []

    def begin(self, method: str, args: Mapping[str, Any]) -> None:
        if self._closed:
            raise ConsentError(method, "config", code="closed")
        passed = {name: value for name, value in args.items() if value is not None}
        self.calls.append(FakeCall(method, passed))

    def close(self) -> None:
        self._closed = True

    def send(self, call: Call, _seconds: float | None) -> Answer | ConsentError:
        if self.next_error is not None:
            (kind, facts), self.next_error = self.next_error, None
            return ConsentError(call.name, kind, **facts)
        if self.is_unavailable:
            return ConsentError(call.name, "network", detail="refused")
        answer: Callable[[Call, Any], Any] = getattr(self, "_" + call.operation.replace(".", "_"))
        try:
            value = answer(call, dict(call.body or {}))
        except ConsentError as error:
            return error
        return Answer(call.row.statuses[0], httpx.Headers(), json.dumps(value).encode("utf-8"))

    def set_verdict(self, verdict: Verdict) -> None:
        told = {_camel(field.name): getattr(verdict, field.name) for field in fields(verdict)}
        del told["raw"]
        present = {name: value for name, value in told.items() if value is not None}
        self.verdicts[verdict.request_id] = {**verdict.raw, **present}

    def sign(self, principal_id: str, *, gpc: bool) -> dict[str, Any]:
        purposes, seq = self.log.visitor_state(principal_id, gpc=gpc)
        state = self._signer.sign(principal_id, purposes, seq, self._clock())
        return {"state": state, "purposes": purposes, "seq": seq}

    def _canProcess(self, _call: Call, body: dict[str, Any]) -> dict[str, Any]:
        return self.log.decide(body["principalId"], body["purpose"])

    def _canProcessMany(self, _call: Call, body: dict[str, Any]) -> dict[str, Any]:
        decide = self.log.decide
        return {
            "results": [
                {"id": one["id"], **decide(one["principalId"], one["purpose"])} for one in body["checks"]
            ]
        }

    def _grant(self, call: Call, body: dict[str, Any]) -> dict[str, Any]:
        return self.log.write(call.name, body, call.idempotency_key)

    _deny = _grant
    _withdraw = _grant

    def _state(self, _call: Call, body: dict[str, Any]) -> dict[str, Any]:
        principal_id = body["principalId"]
        purposes = self.log.state(principal_id)
        return {"principalId": principal_id, "subject": _subject_of(principal_id), "purposes": purposes}

    def _history(self, call: Call, body: dict[str, Any]) -> dict[str, Any]:
        return self.log.history(call.name, body["principalId"], body.get("cursor"), body.get("limit", 50))

    def _refreshState(self, call: Call, body: dict[str, Any]) -> dict[str, Any]:
        state = parse_state(body["state"])
        principal_id = self._signer.principal_of(state.subject) if state else None
        current = None if principal_id is None else self.sign(principal_id, gpc=body.get("gpc", False))
        # gpd does not know a person who has never chosen.
        if current is None or current["seq"] == 0:
            raise refusal(call.name, "no-data", 404)
        return current

    def _stateKeys(self, _call: Call, _body: dict[str, Any]) -> dict[str, Any]:
        return self._signer.jwks()

    def _sessions_create(self, _call: Call, body: dict[str, Any]) -> dict[str, Any]:
        token, principal_id = f"gpd_ps_fake{len(self.calls)}", body["principalId"]
        self._sessions[token] = principal_id
        return {
            "token": token,
            "principalId": principal_id,
            "subject": _subject_of(principal_id),
            "expiresAt": self.log.time(900),
        }

    def _join(self, call: Call, body: dict[str, Any]) -> dict[str, Any]:
        account = self._person_of(call)
        self.log.join(body["principalId"], account)
        return {"principalId": account, "joined": body["principalId"], "joinedAt": self.log.time()}

    def _link(self, call: Call, body: dict[str, Any]) -> dict[str, Any]:
        principal_id = self._person_of(call)
        if body["token"] not in self.verdicts:
            raise refusal(call.name, "unauthenticated", 401)
        return {"principalId": principal_id, "requestId": body["token"], "linkedAt": self.log.time()}

    def _erase(self, call: Call, _body: dict[str, Any]) -> dict[str, Any]:
        principal_id = self._person_of(call)
        count = self.log.erase(principal_id)
        return {
            "receiptId": f"era_fake{len(self.calls)}",
            "tenant": "fake",
            "subject": _subject_of(principal_id),
            "requestedBy": "subject",
            "erasedAt": self.log.time(),
            "scopes": [{"scope": "consent", "action": "erased" if count else "none", "count": count}],
            "incomplete": False,
        }

    def _agent(self, _call: Call, _body: dict[str, Any]) -> dict[str, Any]:
        return self.agent

    def _missing(self, call: Call, _body: dict[str, Any]) -> dict[str, Any]:
        raise refusal(call.name, "not-found", 404)

    _receipt = _missing
    _proof = _missing
    _checkpoint = _missing
    _vkey = _missing
    _exportLog = _missing

    def _decision(self, call: Call, _body: dict[str, Any]) -> dict[str, Any]:
        verdict = self.verdicts.get(call.path.split("/")[3])
        if verdict is None:
            raise refusal(call.name, "no-such-decision", 404)
        return verdict

    def _reportOutcome(self, call: Call, body: dict[str, Any]) -> dict[str, Any]:
        """Keeps the first report; times are compared as texts."""
        request_id = self._decision(call, body)["requestId"]
        first = {"requestId": request_id, "at": self.log.time(), **body}
        stored = self._outcomes.setdefault(request_id, first)
        if stored["outcome"] != body["outcome"] or stored["at"] != body.get("at", stored["at"]):
            raise refusal(call.name, "idempotency-conflict", 409)
        return stored

    def _purposes(self, _call: Call, _body: dict[str, Any]) -> dict[str, Any]:
        return {"purposes": self.log.purposes()}

    def _savePurposes(self, call: Call, body: dict[str, Any]) -> dict[str, Any]:
        return {"purposes": self.log.define_purposes(call.name, body["purposes"]), "entries": []}

    def _policies(self, _call: Call, _body: dict[str, Any]) -> dict[str, Any]:
        return {"policies": self._policies_list}

    def _publishPolicy(self, _call: Call, body: dict[str, Any]) -> dict[str, Any]:
        sha256 = hashlib.sha256(body["text"].encode()).hexdigest()
        version = len(self._policies_list) + 1
        policy = {"version": version, "sha256": sha256, "publishedAt": self.log.time(), **body}
        self._policies_list.append(policy)
        return {**policy, **self.log.publish(version, body["material"])}

    def _ping(self, _call: Call, _body: dict[str, Any]) -> dict[str, Any]:
        return {"status": "ok", "version": f"fake {VERSION}"}

    def _person_of(self, call: Call) -> str:
        principal_id = self._sessions.get(call.token or "")
        if principal_id is None:
            raise refusal(call.name, "unauthenticated", 401)
        return principal_id


class _AsyncFakeServer:
    def __init__(self, server: _FakeServer) -> None:
        self._server = server
        self.begin = server.begin

    async def send(self, call: Call, seconds: float | None) -> Answer | ConsentError:
        return self._server.send(call, seconds)

    async def close(self) -> None:
        self._server.close()


class _Controls:
    """Tells a fake what its server knows and does."""

    _server: _FakeServer

    @property
    def calls(self) -> list[FakeCall]:
        """All calls, in order."""
        return self._server.calls

    def set_unavailable(self, unavailable: bool) -> None:
        """Makes all further calls fail as if the server were down, or work again."""
        self._server.is_unavailable = unavailable

    def set_next_error(self, kind: ErrorKind, **facts: Any) -> None:
        """Makes the next call that reaches the server fail once. A kind that has one brings its status."""
        facts.setdefault("status", _STATUS_OF.get(kind))
        self._server.next_error = (kind, facts)

    def set_purposes(self, purposes: Sequence[str]) -> None:
        """Sets the only purposes that exist. Without it every purpose is known."""
        self._server.log.set_purposes(purposes)

    def set_ttl_days(self, purpose: str, days: float) -> None:
        """Sets the days after which a grant of this purpose expires by `clock`; without it never."""
        self._server.log.ttl_days[purpose] = days

    def set_gpc_policy(self, purpose: str, policy: GpcPolicy) -> None:
        """Sets the effect of Global Privacy Control on a purpose; "opt-out" if it was not set."""
        self._server.log.set_gpc_policy(purpose, policy)

    def set_agent(self, **answer: Any) -> None:
        """Sets what `agent` answers about signed requests; without it their keys are not known."""
        self._server.agent = {**_UNKNOWN, "status": "verified", "reason": None, **answer}

    def set_decision(self, request_id: str, **verdict: Any) -> None:
        """Sets the verdict that `decision` returns for this request: fields of Verdict."""
        default = {
            "class_": "human",
            "reason": "ok",
            "decided_at": self._server.log.time(),
            "restricted": False,
        }
        self._server.set_verdict(Verdict(**{**default, **verdict, "request_id": request_id}))

    def cookie_for(self, principal_id: str) -> str:
        """A `Cookie` header as this person's browser sends it now. Later it is as old as `clock` says."""
        checks_of.check_principal("cookie_for", principal_id)
        return f"{STATE_COOKIE}={self._server.sign(principal_id, gpc=False)['state']}"


def _settings(on_unavailable: OnUnavailable, cookie_domain: str | None) -> Settings:
    domain = check_cookie_domain(cookie_domain)
    return Settings(("http://fake.example",), "fake", 2.0, 10.0, 0, on_unavailable, domain)


class FakeConsent(_Controls, Consent):
    """Has the methods of ConsentClient. Timeouts are accepted and ignored."""

    def __init__(
        self,
        *,
        on_unavailable: OnUnavailable = "deny",
        cookie_domain: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`clock` returns the seconds since the epoch, for grants and cookies."""
        self._server = _FakeServer(clock)
        super().__init__(self._server, _settings(on_unavailable, cookie_domain), clock)


class AsyncFakeConsent(_Controls, AsyncConsent):
    """Has the methods of AsyncConsentClient. Timeouts are accepted and ignored."""

    def __init__(
        self,
        *,
        on_unavailable: OnUnavailable = "deny",
        cookie_domain: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`clock` returns the seconds since the epoch, for grants and cookies."""
        self._server = _FakeServer(clock)
        super().__init__(_AsyncFakeServer(self._server), _settings(on_unavailable, cookie_domain), clock)
