"""The fake for asyncio, on the same memory as the blocking one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from ._fake import FakeCall, FakeConsent
from ._fake_log import GpcPolicy
from ._options import OnUnavailable
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


class AsyncFakeConsent:
    """Has the same methods as AsyncConsentClient."""

    sessions: AsyncFakeSessions

    def __init__(
        self,
        *,
        on_unavailable: OnUnavailable = "deny",
        cookie_domain: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`clock` returns the seconds since the epoch, for the age of cookies."""
        self._fake = FakeConsent(on_unavailable=on_unavailable, cookie_domain=cookie_domain, clock=clock)
        self.sessions = AsyncFakeSessions(self._fake)

    @property
    def calls(self) -> list[FakeCall]:
        """All calls, in order."""
        return self._fake.calls

    def set_unavailable(self, unavailable: bool) -> None:
        """Makes all further calls fail as if the server were down, or work again."""
        self._fake.set_unavailable(unavailable)

    def set_gpc_policy(self, purpose: str, policy: GpcPolicy) -> None:
        """Sets the effect of Global Privacy Control on a purpose; "opt-out" if it was not set."""
        self._fake.set_gpc_policy(purpose, policy)

    def set_decision(self, request_id: str, **verdict: Any) -> None:
        """Sets the verdict that `decision` returns for this request: fields of Verdict."""
        self._fake.set_decision(request_id, **verdict)

    def cookie_for(self, principal_id: str) -> str:
        """A `Cookie` header as this person's browser sends it now. Later it is as old as `clock` says."""
        return self._fake.cookie_for(principal_id)

    async def is_allowed(
        self, principal_id: str, purpose: str, *, min_seq: int | None = None, timeout: float | None = None
    ) -> bool:
        return self._fake.is_allowed(principal_id, purpose, min_seq=min_seq)

    async def can_process(
        self, principal_id: str, purpose: str, *, min_seq: int | None = None, timeout: float | None = None
    ) -> Decision:
        return self._fake.can_process(principal_id, purpose, min_seq=min_seq)

    async def can_process_many(
        self, checks: Sequence[tuple[str, str]], *, timeout: float | None = None
    ) -> list[Decision]:
        return self._fake.can_process_many(checks)

    async def grant(
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
        return self._fake.grant(
            principal_id,
            purposes,
            policy_version=policy_version,
            gpc=gpc,
            over_gpc=over_gpc,
            idempotency_key=idempotency_key,
        )

    async def deny(
        self,
        principal_id: str,
        purposes: Sequence[str],
        *,
        policy_version: int | None = None,
        gpc: bool | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> WriteResult:
        return self._fake.deny(
            principal_id, purposes, policy_version=policy_version, gpc=gpc, idempotency_key=idempotency_key
        )

    async def withdraw(
        self,
        principal_id: str,
        purposes: Sequence[str],
        *,
        policy_version: int | None = None,
        gpc: bool | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> WriteResult:
        return self._fake.withdraw(
            principal_id, purposes, policy_version=policy_version, gpc=gpc, idempotency_key=idempotency_key
        )

    async def state(self, principal_id: str, *, timeout: float | None = None) -> ConsentState:
        return self._fake.state(principal_id)

    async def history(
        self,
        principal_id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> History:
        return self._fake.history(principal_id, cursor=cursor, limit=limit)

    async def receipt(self, seq: int, *, timeout: float | None = None) -> Receipt:
        return self._fake.receipt(seq)

    async def proof(self, seq: int, *, timeout: float | None = None) -> str:
        return self._fake.proof(seq)

    async def decision(self, request_id: str, *, timeout: float | None = None) -> Verdict:
        return self._fake.decision(request_id)

    async def report_outcome(
        self, request_id: str, outcome: str, *, at: str | None = None, timeout: float | None = None
    ) -> ReportedOutcome:
        return self._fake.report_outcome(request_id, outcome, at=at)

    async def read_state(
        self, cookie_header: str | None, *, timeout: float | None = None
    ) -> VisitorState | None:
        return self._fake.read_state(cookie_header)

    async def current_state(self, cookie_header: str | None, *, timeout: float | None = None) -> CurrentState:
        return self._fake.current_state(cookie_header)

    async def may(
        self,
        request: object,
        purposes: Sequence[str],
        *,
        principal_id: str | None = None,
        timeout: float | None = None,
    ) -> Permissions:
        return self._fake.may(request, purposes, principal_id=principal_id)

    async def ping(self, *, timeout: float | None = None) -> Health:
        return self._fake.ping()

    async def close(self) -> None:
        self._fake.close()


class AsyncFakeSessions:
    def __init__(self, fake: FakeConsent) -> None:
        self._fake = fake

    async def create(self, principal_id: str, *, timeout: float | None = None) -> Session:
        return self._fake.sessions.create(principal_id)
