"""The methods of SPEC.md section 2, once: clients send their calls to gpd, fakes answer them from memory.

`npm run gen` makes the blocking methods of this file.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from . import _checks as checks_of
from ._agents import describe_request
from ._checkout import CheckoutAdvice, advice_of
from ._course import Answer, Call
from ._errors import ConsentError
from ._operations import Operation, Operations, WriteName, call_of
from ._options import Settings, check_call_seconds
from ._shapes import read_verdict as verdict_reader
from ._shapes import reader
from ._types import (
    AgentAnswer,
    ConsentState,
    CurrentState,
    Decision,
    Health,
    History,
    HistoryEvent,
    Permissions,
    Receipt,
    ReportedOutcome,
    Session,
    Verdict,
    VisitorState,
    WriteResult,
)
from ._visitor import Question, Visitors
from ._wire import (
    ErasureReceipt,
    Join,
    Link,
    Policies,
    Policy,
    PublishedPolicy,
    Purpose,
    Purposes,
    SavedPurposes,
)

T = TypeVar("T")


class AsyncSender(Protocol):
    def begin(self, method: str, args: Mapping[str, Any]) -> None:
        """Notes a call of a method; raises kind config once it is closed."""

    async def send(self, call: Call, seconds: float | None) -> Answer | ConsentError: ...
    async def close(self) -> None: ...


class AsyncConsent:
    """What clients and fakes do. Let your own code depend on it."""

    sessions: AsyncSessions

    def __init__(self, sender: AsyncSender, settings: Settings, clock: Callable[[], float]) -> None:
        self._sender = sender
        self._settings = settings
        self._clock = clock
        self._operations = Operations(settings)
        self._visitors = Visitors(self._operations, settings.on_unavailable, settings.cookie_domain, clock)
        self.sessions = AsyncSessions(self)

    async def is_allowed(
        self, principal_id: str, purpose: str, *, min_seq: int | None = None, timeout: float | None = None
    ) -> bool:
        """Returns true only if the server's decision allows this processing."""
        operation = self._operations.check("is_allowed", principal_id, purpose, min_seq)
        args = {"principal_id": principal_id, "purpose": purpose, "min_seq": min_seq}
        return (await self._run(operation, timeout, args)).allowed

    async def can_process(
        self, principal_id: str, purpose: str, *, min_seq: int | None = None, timeout: float | None = None
    ) -> Decision:
        """Returns the decision with its proof; `min_seq` requires a log that has reached that entry."""
        operation = self._operations.check("can_process", principal_id, purpose, min_seq)
        args = {"principal_id": principal_id, "purpose": purpose, "min_seq": min_seq}
        return await self._run(operation, timeout, args)

    async def can_process_many(
        self, checks: Sequence[tuple[str, str]], *, timeout: float | None = None
    ) -> list[Decision]:
        """Returns up to 100 decisions of one snapshot, in the order of the pairs (principal_id, purpose)."""
        operation = self._operations.check_many(checks)
        args = {"checks": list(checks)}
        if len(checks) > 0:
            return await self._run(operation, timeout, args)
        self._sender.begin(operation.call.name, args)
        return []

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
        """Records that a person agrees. `gpc` tells the signal; `over_gpc` is a yes despite it."""
        more = {"policy_version": policy_version, "gpc": gpc, "over_gpc": over_gpc}
        return await self._write("grant", principal_id, purposes, more, idempotency_key, timeout)

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
        """Records that a person does not agree."""
        more = {"policy_version": policy_version, "gpc": gpc}
        return await self._write("deny", principal_id, purposes, more, idempotency_key, timeout)

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
        more = {"policy_version": policy_version, "gpc": gpc}
        return await self._write("withdraw", principal_id, purposes, more, idempotency_key, timeout)

    async def state(self, principal_id: str, *, timeout: float | None = None) -> ConsentState:
        """Returns a person's latest choice for each purpose."""
        checks_of.check_principal("state", principal_id)
        call = call_of("state", "state", {"principalId": principal_id}, secrets=[principal_id])
        operation = self._operations.of(call, reader("state", ConsentState))
        return await self._run(operation, timeout, {"principal_id": principal_id})

    async def history(
        self,
        principal_id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> History:
        """Returns one page of a person's choices, newest first."""
        checks_of.check_principal("history", principal_id)
        body = {"principalId": principal_id, "cursor": cursor, "limit": limit}
        call = call_of("history", "history", body, secrets=[principal_id])
        args = {"principal_id": principal_id, "cursor": cursor, "limit": limit}
        return await self._run(self._operations.of(call, reader("history", History)), timeout, args)

    async def history_all(
        self, principal_id: str, *, limit: int | None = None, timeout: float | None = None
    ) -> AsyncIterator[HistoryEvent]:
        """Yields all choices of a person, newest first; asks for each page of `limit` when needed."""
        cursor: str | None = None
        while True:
            page = await self.history(principal_id, cursor=cursor, limit=limit, timeout=timeout)
            for event in page.events:
                yield event
            cursor = page.next_cursor
            if cursor is None:
                return

    async def join(
        self, session: str, principal_id: str, principal_secret: str, *, timeout: float | None = None
    ) -> Join:
        """Joins a browser with the account of a session: from then on each answers for both."""
        checks_of.check_text("join", "session", session)
        checks_of.check_principal("join", principal_id)
        checks_of.check_text("join", "principal_secret", principal_secret)
        body = {"principalId": principal_id, "principalSecret": principal_secret}
        secrets = [session, principal_id, principal_secret]
        call = call_of("join", "join", body, token=session, secrets=secrets)
        args = {"session": session, "principal_id": principal_id, "principal_secret": principal_secret}
        return await self._run(self._operations.of(call, reader("join", Join)), timeout, args)

    async def link(self, session: str, token: str, *, timeout: float | None = None) -> Link:
        """Links the visit behind a transparency token with the person of a session."""
        checks_of.check_text("link", "session", session)
        checks_of.check_text("link", "token", token)
        call = call_of("link", "link", {"token": token}, token=session, secrets=[session, token])
        operation = self._operations.of(call, reader("link", Link))
        return await self._run(operation, timeout, {"session": session, "token": token})

    async def erase(self, session: str, *, timeout: float | None = None) -> ErasureReceipt:
        """Erases the consent record of the person of a session."""
        checks_of.check_text("erase", "session", session)
        call = call_of("erase", "erase", {}, token=session, secrets=[session])
        operation = self._operations.of(call, reader("erase", ErasureReceipt))
        return await self._run(operation, timeout, {"session": session})

    async def receipt(self, seq: int, *, timeout: float | None = None) -> Receipt:
        """Returns a signed copy of an entry, for the person it is about."""
        checks_of.check_seq("receipt", seq)
        call = call_of("receipt", "receipt", params={"seq": seq})
        return await self._run(self._operations.of(call, reader("receipt", Receipt)), timeout, {"seq": seq})

    async def proof(self, seq: int, *, timeout: float | None = None) -> str:
        """Returns the proof of an entry as text, for `verify_proof` or an auditor."""
        checks_of.check_seq("proof", seq)
        call = call_of("proof", "proof", params={"seq": seq})
        return await self._run(self._operations.text(call), timeout, {"seq": seq})

    async def decision(self, request_id: str, *, timeout: float | None = None) -> Verdict:
        """Returns the verdict of a visit. A browser must not deliver its own verdict."""
        checks_of.check_request_id("decision", request_id)
        call = call_of("decision", "decision", params={"requestId": request_id})
        operation = self._operations.of(call, verdict_reader(request_id))
        return await self._run(operation, timeout, {"request_id": request_id})

    async def checkout(
        self, request_id: object, *, context: str | None = None, deadline: float = 0.5
    ) -> CheckoutAdvice:
        """Advises a checkout by the verdict of this visit, and never refuses.

        `no-verdict` if gpd has none of the last 30 minutes or does not answer in `deadline` seconds: the sale
        goes on without gpd. No error of gpd is raised. `request_id` is what the page sent; any value.
        `context` is the order, as the page named it in `identify({context})`: a verdict for another is none.
        """
        checks_of.check_deadline("checkout", deadline)
        try:
            verdict = await self.decision(request_id, timeout=deadline)  # type: ignore[arg-type]
        except ConsentError:
            return "no-verdict"
        return advice_of(verdict, self._clock(), context)

    async def report_outcome(
        self, request_id: str, outcome: str, *, at: str | None = None, timeout: float | None = None
    ) -> ReportedOutcome:
        """Reports the outcome of a decision once. Repeating it changes nothing; another one is a conflict."""
        name = "report_outcome"
        checks_of.check_report(name, request_id, outcome)
        body = {"outcome": outcome, "at": at}
        call = call_of(name, "reportOutcome", body, params={"requestId": request_id})
        read = reader("reportOutcome", ReportedOutcome, request_id=request_id, outcome=outcome)
        args = {"request_id": request_id, "outcome": outcome, "at": at}
        return await self._run(self._operations.of(call, read), timeout, args)

    async def agent(
        self,
        request: object,
        *,
        origin: str | None = None,
        body: bytes | None = None,
        timeout: float | None = None,
    ) -> AgentAnswer:
        """Returns who signed a request. Ask once for each: a nonce is used up by the first that asks.

        `request` is a WSGI environ, an ASGI scope, a request made of one (Django, Flask, FastAPI), or a
        mapping with `method`, `url` and `headers`. `origin` is the address of your site; by default that of
        the request, which its client names. A request without signature needs no call. If gpd cannot be
        asked, nobody is verified: `unverified`, `unavailable`.
        """
        described = describe_request(request, origin, body)
        if described is not None:
            operation = self._operations.agent(described)
            return await self._run(operation, timeout, {"request": request})
        self._sender.begin("agent", {"request": request})
        return AgentAnswer("none")

    async def purposes(self, *, timeout: float | None = None) -> tuple[Purpose, ...]:
        """Returns the purposes of the tenant."""
        operation = self._operations.of(call_of("purposes", "purposes"), reader("purposes", Purposes))
        return (await self._run(operation, timeout, {})).purposes

    async def save_purposes(
        self,
        purposes: Sequence[Mapping[str, Any]],
        *,
        material: bool | None = None,
        timeout: float | None = None,
    ) -> SavedPurposes:
        """Defines or changes purposes, with the fields of the wire; needs a key of scope `operator`."""
        body = {"purposes": list(purposes), "material": material}
        call = call_of("save_purposes", "savePurposes", body)
        operation = self._operations.of(call, reader("savePurposes", SavedPurposes))
        return await self._run(operation, timeout, {"purposes": list(purposes), "material": material})

    async def policies(self, *, timeout: float | None = None) -> tuple[Policy, ...]:
        """Returns the policy versions of the tenant."""
        operation = self._operations.of(call_of("policies", "policies"), reader("policies", Policies))
        return (await self._run(operation, timeout, {})).policies

    async def publish_policy(
        self, text: str, *, material: bool, timeout: float | None = None
    ) -> PublishedPolicy:
        """Publishes the next policy version; needs scope `operator`. `material`: all are asked again."""
        args = {"text": text, "material": material}
        call = call_of("publish_policy", "publishPolicy", args)
        operation = self._operations.of(call, reader("publishPolicy", PublishedPolicy))
        return await self._run(operation, timeout, args)

    async def checkpoint(self, *, timeout: float | None = None) -> str:
        """Returns the signed head of the tenant's log."""
        return await self._run(self._operations.text(call_of("checkpoint", "checkpoint")), timeout, {})

    async def vkey(self, *, timeout: float | None = None) -> str:
        """Returns the key that verifies checkpoints and proofs. Pin it: store it elsewhere."""
        return (await self._run(self._operations.text(call_of("vkey", "vkey")), timeout, {})).strip()

    async def export_log(self, *, timeout: float | None = None) -> str:
        """Returns all entries of the log, one JSON value a line; at most 256 MiB."""
        return await self._run(self._operations.text(call_of("export_log", "exportLog")), timeout, {})

    async def read_state(
        self, cookie_header: str | None, *, timeout: float | None = None
    ) -> VisitorState | None:
        """Returns what the cookie `gpd_consent` says, offline but for gpd's keys; None denies."""
        self._sender.begin("read_state", {"cookie_header": cookie_header})
        return await self._answer(self._visitors.read_state(cookie_header), timeout)

    async def current_state(self, cookie_header: str | None, *, timeout: float | None = None) -> CurrentState:
        """Like `read_state`, but asks gpd to renew a cookie that is older than five minutes."""
        self._sender.begin("current_state", {"cookie_header": cookie_header})
        return await self._answer(self._visitors.current_state(cookie_header), timeout)

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
        args = {"request": request, "purposes": purposes, "principal_id": principal_id}
        self._sender.begin("may", args)
        return await self._answer(self._visitors.may(request, purposes, principal_id), timeout)

    async def ping(self, *, timeout: float | None = None) -> Health:
        """Returns if the server answers; the key is not checked."""
        operation = self._operations.of(call_of("ping", "ping"), reader("ping", Health, status="ok"))
        return await self._run(operation, timeout, {})

    async def close(self) -> None:
        """Cancels running calls; later calls are refused."""
        await self._sender.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _answer(self, question: Question[T], timeout: float | None) -> T:
        """Makes the calls of a question, all in one deadline."""
        seconds = self._settings.timeout if timeout is None else check_call_seconds(timeout)
        deadline = time.monotonic() + seconds
        outcome: Any = None
        while True:
            try:
                operation = question.send(outcome)
            except StopIteration as end:
                answer: T = end.value
                return answer
            try:
                sent = await self._sender.send(operation.call, deadline - time.monotonic())
                outcome = operation.conclude(sent)
            except ConsentError as error:
                outcome = error

    async def _run(self, operation: Operation[T], timeout: float | None, args: Mapping[str, Any]) -> T:
        self._sender.begin(operation.call.name, args)
        seconds = None if timeout is None else check_call_seconds(timeout)
        return operation.conclude(await self._sender.send(operation.call, seconds))

    async def _write(
        self,
        name: WriteName,
        principal_id: str,
        purposes: Sequence[str],
        more: Mapping[str, Any],
        idempotency_key: str | None,
        timeout: float | None,
    ) -> WriteResult:
        body = {
            "policyVersion": more["policy_version"],
            "gpc": more["gpc"],
            "overGpc": more.get("over_gpc"),
        }
        call = self._operations.write(name, principal_id, purposes, idempotency_key, body)
        args = {"principal_id": principal_id, "purposes": list(purposes), **more}
        args["idempotency_key"] = idempotency_key
        return await self._run(self._operations.of(call, reader(name, WriteResult)), timeout, args)


class AsyncSessions:
    def __init__(self, client: AsyncConsent) -> None:
        self._client = client

    async def create(self, principal_id: str, *, timeout: float | None = None) -> Session:
        """Creates a token for one person, for at most 15 minutes. Give it only to that person's browser."""
        name = "sessions.create"
        checks_of.check_principal(name, principal_id)
        call = call_of(name, name, {"principalId": principal_id}, secrets=[principal_id])
        operation = self._client._operations.of(call, reader(name, Session))
        return await self._client._run(operation, timeout, {"principal_id": principal_id})
