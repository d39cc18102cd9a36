"""The blocking client."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from . import _network
from ._course import Course
from ._errors import ConsentError
from ._operations import Operation, Operations, WriteName
from ._options import OnUnavailable, check_call_seconds, read_environment, read_settings
from ._transport import Transport
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


class ConsentClient:
    """A client of gpd's consent API. Create one per process and share it between threads."""

    sessions: Sessions

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
        transport: httpx.BaseTransport | None = None,
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
        http = transport or _network.blocking(self._settings.base, ssl_context)
        self._transport = Transport(self._settings, http, owned=transport is None)
        self.sessions = Sessions(self)

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, **options: Any) -> Self:
        """Reads GPD_CONSENT_URL and GPD_CONSENT_KEY; `options` are those of the constructor."""
        url, key = read_environment(os.environ if environ is None else environ)
        return cls(url, key, **options)

    def is_allowed(
        self, principal_id: str, purpose: str, *, min_seq: int | None = None, timeout: float | None = None
    ) -> bool:
        """Returns true only if the server's decision allows this processing."""
        operation = self._operations.check("is_allowed", principal_id, purpose, min_seq)
        return self._run(operation, timeout).allowed

    def can_process(
        self, principal_id: str, purpose: str, *, min_seq: int | None = None, timeout: float | None = None
    ) -> Decision:
        """Returns the decision with its proof; `min_seq` requires a log that has reached that entry."""
        return self._run(self._operations.check("can_process", principal_id, purpose, min_seq), timeout)

    def can_process_many(
        self, checks: Sequence[tuple[str, str]], *, timeout: float | None = None
    ) -> list[Decision]:
        """Returns up to 100 decisions of one snapshot, in the order of the pairs (principal_id, purpose)."""
        operation = self._operations.check_many(checks)
        return self._run(operation, timeout) if len(checks) > 0 else []

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
        return self._write(
            "grant", principal_id, purposes, policy_version, gpc, idempotency_key, timeout, over_gpc
        )

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
        return self._write("deny", principal_id, purposes, policy_version, gpc, idempotency_key, timeout)

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
        """After it has returned, every further check is denied, on every node."""
        return self._write("withdraw", principal_id, purposes, policy_version, gpc, idempotency_key, timeout)

    def state(self, principal_id: str, *, timeout: float | None = None) -> ConsentState:
        """Returns a person's latest choice for each purpose."""
        return self._run(self._operations.state(principal_id), timeout)

    def history(
        self,
        principal_id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> History:
        """Returns a person's choices, newest first."""
        return self._run(self._operations.history(principal_id, cursor, limit), timeout)

    def receipt(self, seq: int, *, timeout: float | None = None) -> Receipt:
        """Returns a signed copy of an entry, for the person it is about."""
        return self._run(self._operations.receipt(seq), timeout)

    def proof(self, seq: int, *, timeout: float | None = None) -> str:
        """Returns the proof of an entry as text, for `verify_proof` or an auditor."""
        return self._run(self._operations.proof(seq), timeout)

    def decision(self, request_id: str, *, timeout: float | None = None) -> Verdict:
        """Returns the verdict of a visit. A browser must not deliver its own verdict."""
        return self._run(self._operations.decision(request_id), timeout)

    def report_outcome(
        self, request_id: str, outcome: str, *, at: str | None = None, timeout: float | None = None
    ) -> ReportedOutcome:
        """Reports the outcome of a decision once. Repeating it changes nothing; another one is a conflict."""
        return self._run(self._operations.report_outcome(request_id, outcome, at), timeout)

    def read_state(self, cookie_header: str | None, *, timeout: float | None = None) -> VisitorState | None:
        """Returns what the cookie `gpd_consent` says, offline but for gpd's keys; None denies."""
        return self._answer("read_state", self._visitors.read_state(cookie_header), timeout)

    def current_state(self, cookie_header: str | None, *, timeout: float | None = None) -> CurrentState:
        """Like `read_state`, but asks gpd to renew a cookie that is older than five minutes."""
        return self._answer("current_state", self._visitors.current_state(cookie_header), timeout)

    def may(
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
        return self._answer("may", self._visitors.may(request, purposes, principal_id), timeout)

    def ping(self, *, timeout: float | None = None) -> Health:
        """Resolves if the server answers; the key is not checked."""
        return self._run(self._operations.ping(), timeout)

    def close(self) -> None:
        """Cancels calls that run in other threads; later calls are refused."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._settings.base!r})"

    def _answer(self, method: str, question: Question[T], timeout: float | None) -> T:
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
                outcome = operation.conclude(self._transport.send(course), course)
            except ConsentError as error:
                outcome = error

    def _run(self, operation: Operation[T], timeout: float | None) -> T:
        seconds = None if timeout is None else check_call_seconds(timeout)
        course = Course(operation.call, self._settings, seconds)
        return operation.conclude(self._transport.send(course), course)

    def _write(
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
        return self._run(operation, timeout)


class Sessions:
    def __init__(self, client: ConsentClient) -> None:
        self._client = client

    def create(self, principal_id: str, *, timeout: float | None = None) -> Session:
        """Creates a token for one person, for at most 15 minutes. Give it only to that person's browser."""
        client = self._client
        return client._run(client._operations.session(principal_id), timeout)
