"""A fake of the client for your tests. It works in memory and allows only what was granted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from . import _checks as checks_of
from ._errors import ConsentError
from ._fake_log import TIME, FakeLog, GpcPolicy, Write, WriteMethod, store_outcome
from ._fake_visitors import FakeVisitorCalls
from ._options import OnUnavailable, check_cookie_domain
from ._shapes import unavailable
from ._types import (
    ConsentState,
    CurrentState,
    Decision,
    Health,
    History,
    Permissions,
    Receipt,
    ReportedOutcome,
    Session,
    Verdict,
    VisitorState,
    WriteResult,
)
from ._version import VERSION
from ._visitor import Question, Visitors

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FakeCall:
    method: str
    args: Mapping[str, Any]
    """Arguments by name, without those that were not passed."""


class FakeConsent:
    """Has the same methods as ConsentClient. Timeouts are accepted and ignored."""

    calls: list[FakeCall]
    """All calls, in order."""
    sessions: FakeSessions

    def __init__(
        self,
        *,
        on_unavailable: OnUnavailable = "deny",
        cookie_domain: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`clock` returns the seconds since the epoch, for the age of cookies."""
        self.calls = []
        self.sessions = FakeSessions(self)
        self._on_unavailable = on_unavailable
        self._log = FakeLog()
        self._verdicts: dict[str, Verdict] = {}
        self._outcomes: dict[str, ReportedOutcome] = {}
        self._unavailable = False
        self._visitor_calls = FakeVisitorCalls(self._log, self._decide, lambda: self._unavailable, clock)
        domain = check_cookie_domain(cookie_domain)
        self._visitors = Visitors(self._visitor_calls, on_unavailable, domain, clock)
        self._closed = False

    def set_unavailable(self, unavailable: bool) -> None:
        """Makes all further calls fail as if the server were down, or work again."""
        self._unavailable = unavailable

    def set_gpc_policy(self, purpose: str, policy: GpcPolicy) -> None:
        """Sets the effect of Global Privacy Control on a purpose; "opt-out" if it was not set."""
        self._log.set_gpc_policy(purpose, policy)

    def set_decision(
        self,
        request_id: str,
        *,
        class_: str = "human",
        reason: str = "ok",
        decided_at: str = TIME,
        restricted: bool = False,
        **more: Any,
    ) -> None:
        """Sets the verdict that `decision` returns for this request; `more` are other fields of Verdict."""
        self._verdicts[request_id] = Verdict(request_id, class_, reason, decided_at, restricted, **more)

    def cookie_for(self, principal_id: str) -> str:
        """A `Cookie` header as this person's browser sends it now. Later it is as old as `clock` says."""
        checks_of.check_principal("cookie_for", principal_id)
        return self._visitor_calls.cookie_for(principal_id)

    def is_allowed(
        self, principal_id: str, purpose: str, *, min_seq: int | None = None, timeout: float | None = None
    ) -> bool:
        return self._check("is_allowed", principal_id, purpose, min_seq).allowed

    def can_process(
        self, principal_id: str, purpose: str, *, min_seq: int | None = None, timeout: float | None = None
    ) -> Decision:
        return self._check("can_process", principal_id, purpose, min_seq)

    def can_process_many(
        self, checks: Sequence[tuple[str, str]], *, timeout: float | None = None
    ) -> list[Decision]:
        name = "can_process_many"
        checks_of.check_batch(name, checks)
        self._called(name, checks=list(checks))
        return [self._decide(name, principal_id, purpose) for principal_id, purpose in checks]

    def grant(
        self,
        principal_id: str,
        purposes: Sequence[str],
        *,
        policy_version: int | None = None,
        gpc: bool | None = None,
        over_gpc: bool | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> WriteResult:
        return self._write("grant", principal_id, purposes, policy_version, gpc, idempotency_key, over_gpc)

    def deny(
        self,
        principal_id: str,
        purposes: Sequence[str],
        *,
        policy_version: int | None = None,
        gpc: bool | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> WriteResult:
        return self._write("deny", principal_id, purposes, policy_version, gpc, idempotency_key)

    def withdraw(
        self,
        principal_id: str,
        purposes: Sequence[str],
        *,
        policy_version: int | None = None,
        gpc: bool | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> WriteResult:
        return self._write("withdraw", principal_id, purposes, policy_version, gpc, idempotency_key)

    def state(self, principal_id: str, *, timeout: float | None = None) -> ConsentState:
        checks_of.check_principal("state", principal_id)
        self._reach("state", principal_id=principal_id)
        return self._log.state(principal_id)

    def history(
        self,
        principal_id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> History:
        checks_of.check_principal("history", principal_id)
        self._reach("history", principal_id=principal_id, cursor=cursor, limit=limit)
        return self._log.history(principal_id, cursor, limit)

    def receipt(self, seq: int, *, timeout: float | None = None) -> Receipt:
        checks_of.check_seq("receipt", seq)
        self._reach("receipt", seq=seq)
        raise ConsentError("receipt", "not-found", status=404)

    def proof(self, seq: int, *, timeout: float | None = None) -> str:
        checks_of.check_seq("proof", seq)
        self._reach("proof", seq=seq)
        raise ConsentError("proof", "not-found", status=404)

    def decision(self, request_id: str, *, timeout: float | None = None) -> Verdict:
        checks_of.check_request_id("decision", request_id)
        self._reach("decision", request_id=request_id)
        return self._verdict_of("decision", request_id)

    def report_outcome(
        self, request_id: str, outcome: str, *, at: str | None = None, timeout: float | None = None
    ) -> ReportedOutcome:
        checks_of.check_report("report_outcome", request_id, outcome)
        self._reach("report_outcome", request_id=request_id, outcome=outcome, at=at)
        self._verdict_of("report_outcome", request_id)
        return store_outcome(self._outcomes, request_id, outcome, at)

    def read_state(self, cookie_header: str | None, *, timeout: float | None = None) -> VisitorState | None:
        return self._answer(
            self._visitors.read_state(cookie_header), "read_state", cookie_header=cookie_header
        )

    def current_state(self, cookie_header: str | None, *, timeout: float | None = None) -> CurrentState:
        question = self._visitors.current_state(cookie_header)
        return self._answer(question, "current_state", cookie_header=cookie_header)

    def may(
        self,
        request: object,
        purposes: Sequence[str],
        *,
        principal_id: str | None = None,
        timeout: float | None = None,
    ) -> Permissions:
        question = self._visitors.may(request, purposes, principal_id)
        return self._answer(question, "may", request=request, purposes=purposes, principal_id=principal_id)

    def ping(self, *, timeout: float | None = None) -> Health:
        self._reach("ping")
        return Health("ok", f"fake {VERSION}")

    def close(self) -> None:
        self._closed = True

    def _verdict_of(self, method: str, request_id: str) -> Verdict:
        verdict = self._verdicts.get(request_id)
        if verdict is None:
            raise ConsentError(method, "not-found", code="no-such-decision", status=404)
        return verdict

    def _called(self, method: str, **args: Any) -> None:
        if self._closed:
            raise ConsentError(method, "config", code="closed")
        passed = {name: value for name, value in args.items() if value is not None}
        self.calls.append(FakeCall(method, passed))

    def _reach(self, method: str, **args: Any) -> None:
        self._called(method, **args)
        if self._unavailable:
            raise ConsentError(method, "network")

    def _answer(self, question: Question[T], method: str, **args: Any) -> T:
        self._called(method, **args)
        outcome: Any = None
        while True:
            try:
                call = question.send(outcome)
            except StopIteration as end:
                answer: T = end.value
                return answer
            try:
                outcome = call()
            except ConsentError as error:
                outcome = error

    def _check(self, method: str, principal_id: str, purpose: str, min_seq: int | None) -> Decision:
        checks_of.check_check(method, principal_id, purpose, min_seq)
        self._called(method, principal_id=principal_id, purpose=purpose, min_seq=min_seq)
        return self._decide(method, principal_id, purpose)

    def _decide(self, method: str, principal_id: str, purpose: str) -> Decision:
        if self._unavailable:
            error = ConsentError(method, "network")
            if self._on_unavailable == "error":
                raise error
            return unavailable(error)
        return self._log.decide(principal_id, purpose)

    def _write(
        self,
        method: WriteMethod,
        principal_id: str,
        purposes: Sequence[str],
        policy_version: int | None,
        gpc: bool | None,
        idempotency_key: str | None,
        over_gpc: bool | None = None,
    ) -> WriteResult:
        checks_of.check_write(method, principal_id, purposes)
        if idempotency_key is not None:
            checks_of.check_idempotency_key(method, idempotency_key)
        self._reach(
            method,
            principal_id=principal_id,
            purposes=list(purposes),
            policy_version=policy_version,
            gpc=gpc,
            over_gpc=over_gpc,
            idempotency_key=idempotency_key,
        )
        write = Write(method, principal_id, tuple(purposes), policy_version, gpc, over_gpc)
        return self._log.write(write, idempotency_key)


class FakeSessions:
    def __init__(self, fake: FakeConsent) -> None:
        self._fake = fake

    def create(self, principal_id: str, *, timeout: float | None = None) -> Session:
        checks_of.check_principal("sessions.create", principal_id)
        self._fake._reach("sessions.create", principal_id=principal_id)
        return Session(f"gpd_ps_fake{len(self._fake.calls)}", principal_id, TIME)
