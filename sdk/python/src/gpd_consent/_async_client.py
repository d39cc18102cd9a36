"""The asynchronous client, with the same methods as the blocking one."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from . import _network
from ._async_transport import AsyncTransport
from ._course import Course
from ._errors import ConsentError
from ._operations import Operation, Operations, WriteName
from ._options import OnUnavailable, check_call_seconds, read_environment, read_settings
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
from ._visitor import Question, Visitors

T = TypeVar("T")


class AsyncConsentClient:
    """A client of gpd's consent API for asyncio. Create one per event loop and share it."""

    sessions: AsyncSessions

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = 2.0,
        write_timeout: float = 10.0,
        retries: int = 2,
        on_unavailable: OnUnavailable = "deny",
        cookie_domain: str | None = None,
        clock: Callable[[], float] = time.time,
        ssl_context: ssl.SSLContext | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._settings = read_settings(
            url,
            key,
            timeout=timeout,
            write_timeout=write_timeout,
            retries=retries,
            on_unavailable=on_unavailable,
            cookie_domain=cookie_domain,
        )
        self._operations = Operations(self._settings)
        self._visitors = Visitors(
            self._operations, self._settings.on_unavailable, self._settings.cookie_domain, clock
        )
        http = transport or _network.asynchronous(self._settings.base, ssl_context)
        self._transport = AsyncTransport(self._settings, http, owned=transport is None)
        self.sessions = AsyncSessions(self)

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, **options: Any) -> Self:
        """Reads GPD_CONSENT_URL and GPD_CONSENT_KEY; `options` are those of the constructor."""
        url, key = read_environment(os.environ if environ is None else environ)
        return cls(url, key, **options)

    async def is_allowed(
        self, principal_id: str, purpose: str, *, min_seq: int | None = None, timeout: float | None = None
    ) -> bool:
        """Returns true only if the server's decision allows this processing."""
        operation = self._operations.check("is_allowed", principal_id, purpose, min_seq)
        return (await self._run(operation, timeout)).allowed

    async def can_process(
        self, principal_id: str, purpose: str, *, min_seq: int | None = None, timeout: float | None = None
    ) -> Decision:
        """Returns the decision with its proof; `min_seq` requires a log that has reached that entry."""
        return await self._run(self._operations.check("can_process", principal_id, purpose, min_seq), timeout)

    async def can_process_many(
        self, checks: Sequence[tuple[str, str]], *, timeout: float | None = None
    ) -> list[Decision]:
        """Returns up to 100 decisions of one snapshot, in the order of the pairs (principal_id, purpose)."""
        operation = self._operations.check_many(checks)
        return await self._run(operation, timeout) if len(checks) > 0 else []

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
        return await self._write(
            "grant", principal_id, purposes, policy_version, gpc, idempotency_key, timeout, over_gpc
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
        return await self._write(
            "deny", principal_id, purposes, policy_version, gpc, idempotency_key, timeout
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
        """After it has returned, every further check is denied, on every node."""
        return await self._write(
            "withdraw", principal_id, purposes, policy_version, gpc, idempotency_key, timeout
        )

    async def state(self, principal_id: str, *, timeout: float | None = None) -> ConsentState:
        """Returns a person's latest choice for each purpose."""
        return await self._run(self._operations.state(principal_id), timeout)

    async def history(
        self,
        principal_id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> History:
        """Returns a person's choices, newest first."""
        return await self._run(self._operations.history(principal_id, cursor, limit), timeout)

    async def receipt(self, seq: int, *, timeout: float | None = None) -> Receipt:
        """Returns a signed copy of an entry, for the person it is about."""
        return await self._run(self._operations.receipt(seq), timeout)

    async def proof(self, seq: int, *, timeout: float | None = None) -> str:
        """Returns the proof of an entry as text, for `verify_proof` or an auditor."""
        return await self._run(self._operations.proof(seq), timeout)

    async def decision(self, request_id: str, *, timeout: float | None = None) -> Verdict:
        """Returns the verdict of a visit. A browser must not deliver its own verdict."""
        return await self._run(self._operations.decision(request_id), timeout)

    async def report_outcome(
        self, request_id: str, outcome: str, *, at: str | None = None, timeout: float | None = None
    ) -> ReportedOutcome:
        """Reports the outcome of a decision once. Repeating it changes nothing; another one is a conflict."""
        return await self._run(self._operations.report_outcome(request_id, outcome, at), timeout)

    async def read_state(
        self, cookie_header: str | None, *, timeout: float | None = None
    ) -> VisitorState | None:
        """Returns what the cookie `gpd_consent` says, offline but for gpd's keys; None denies."""
        return await self._answer("read_state", self._visitors.read_state(cookie_header), timeout)

    async def current_state(self, cookie_header: str | None, *, timeout: float | None = None) -> CurrentState:
        """Like `read_state`, but asks gpd to renew a cookie that is older than five minutes."""
        return await self._answer("current_state", self._visitors.current_state(cookie_header), timeout)

    async def may(
        self,
        request: object,
        purposes: Sequence[str],
        *,
        principal_id: str | None = None,
        timeout: float | None = None,
    ) -> Permissions:
        """Returns which purposes are allowed for the page that this request asks for. It heeds `Sec-GPC`.

        `request` is a WSGI environ, an ASGI scope, a request with `headers` (Django, Flask, FastAPI), or
        headers. `principal_id` is your own id of the person who is signed in.
        """
        return await self._answer("may", self._visitors.may(request, purposes, principal_id), timeout)

    async def ping(self, *, timeout: float | None = None) -> Health:
        """Resolves if the server answers; the key is not checked."""
        return await self._run(self._operations.ping(), timeout)

    async def close(self) -> None:
        """Cancels calls that run in other tasks; later calls are refused."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._settings.base!r})"

    async def _answer(self, method: str, question: Question[T], timeout: float | None) -> T:
        """Makes the calls of a question, all in one deadline."""
        self._transport.check_open(method)
        seconds = self._settings.timeout if timeout is None else check_call_seconds(timeout)
        deadline = time.monotonic() + seconds
        outcome: Any = None
        while True:
            try:
                operation = question.send(outcome)
            except StopIteration as end:
                answer: T = end.value
                return answer
            course = Course(operation.call, self._settings, deadline - time.monotonic())
            try:
                outcome = operation.conclude(await self._transport.send(course), course)
            except ConsentError as error:
                outcome = error

    async def _run(self, operation: Operation[T], timeout: float | None) -> T:
        seconds = None if timeout is None else check_call_seconds(timeout)
        course = Course(operation.call, self._settings, seconds)
        return operation.conclude(await self._transport.send(course), course)

    async def _write(
        self,
        name: WriteName,
        principal_id: str,
        purposes: Sequence[str],
        policy_version: int | None,
        gpc: bool | None,
        idempotency_key: str | None,
        timeout: float | None,
        over_gpc: bool | None = None,
    ) -> WriteResult:
        operation = self._operations.write(
            name,
            principal_id,
            purposes,
            policy_version=policy_version,
            gpc=gpc,
            over_gpc=over_gpc,
            idempotency_key=idempotency_key,
        )
        return await self._run(operation, timeout)


class AsyncSessions:
    def __init__(self, client: AsyncConsentClient) -> None:
        self._client = client

    async def create(self, principal_id: str, *, timeout: float | None = None) -> Session:
        """Creates a token for one person, for at most 15 minutes. Give it only to that person's browser."""
        client = self._client
        return await client._run(client._operations.session(principal_id), timeout)
