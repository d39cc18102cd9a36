"""One call without input and output: the request, and the meaning of an outcome (SPEC.md sections 3 to 5).

The blocking and the asynchronous transport share it, so that they cannot differ.
"""

from __future__ import annotations

import json
import re
import socket
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import random
from typing import Any, Literal

import httpx

from ._errors import ConsentError, kind_of_status
from ._json import is_object, parse_json
from ._options import Settings
from ._schedule import is_retryable, parse_retry_after, wait_before
from ._version import USER_AGENT
from ._wire import OPERATIONS, Detail, ErrorKind, Row

MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_EXPORT_BYTES = 256 * 1024 * 1024
_CODE = re.compile(r"[a-z][a-z0-9-]{0,63}")
_REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MIN_CONTAINED = 4
"""Shorter principal ids are only compared as a whole, because many words contain them."""


@dataclass(frozen=True, slots=True, repr=False)
class Call:
    name: str
    """Name of the method, for errors."""
    operation: str
    path: str
    body: Mapping[str, Any] | None = None
    token: str | None = None
    """A token of a person, in place of the key."""
    idempotency_key: str | None = None
    secrets: tuple[str, ...] = ()
    """Principal ids and tokens of the call: they must not be in an error."""

    @property
    def row(self) -> Row:
        return OPERATIONS[self.operation]

    @property
    def max_bytes(self) -> int:
        return MAX_EXPORT_BYTES if self.operation == "exportLog" else MAX_BODY_BYTES


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """An answer of any status. The body is None if it was too large or coded."""

    status: int
    headers: httpx.Headers
    body: bytes | None
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class Break:
    """No answer. `stale`: the connection was closed before an answer came."""

    kind: Literal["timeout", "stale", "broken"]
    detail: Detail | None = None
    cause: Exception | None = None


class Course:
    """Deadline, attempts and waits of one call."""

    __slots__ = ("_replayed", "_retry", "_settings", "_tried", "at", "call", "deadline")

    def __init__(self, call: Call, settings: Settings, seconds: float | None, at: int = 0) -> None:
        self.call = call
        own = settings.write_timeout if call.row.is_write else settings.timeout
        # The timeout of the call replaces that of the client, shorter or longer.
        self.deadline = time.monotonic() + (own if seconds is None else seconds)
        self.at = at
        """Place of the address of the next attempt."""
        self._tried = 1
        self._settings = settings
        self._retry = 1
        self._replayed = False

    def remaining(self) -> float:
        return self.deadline - time.monotonic()

    def judge(self, outcome: Answer | Break) -> Answer | ConsentError | float:
        """Returns the end of the call, or the seconds to wait before the next attempt."""
        if isinstance(outcome, Answer) and outcome.status in self.call.row.statuses:
            return replace(outcome, request_id=self.request_id_of(outcome))
        if isinstance(outcome, Break) and outcome.kind == "timeout":
            # An address that lets everybody wait is not the first of the next call.
            self._go_on()
            return ConsentError(self.call.name, "timeout")
        if isinstance(outcome, Break) and outcome.kind == "stale" and not self._replayed:
            self._replayed = True
            return 0.0
        error = self._error_of(outcome)
        if isinstance(outcome, Answer) and not is_retryable(outcome.status):
            return error
        if error.status is None or error.status >= 500:
            self._go_on()
            if self._tried < len(self._settings.bases):
                self._tried += 1
                return 0.0
        # A nonce is used up by the first attempt that reached gpd.
        if self._retry > self._settings.retries or self.call.operation == "agent":
            return error
        wait = wait_before(self._retry, error.retry_after_seconds, self.remaining(), random())  # noqa: S311
        self._retry += 1
        self._tried = 1
        return error if wait is None else wait

    def _go_on(self) -> None:
        self.at = (self.at + 1) % len(self._settings.bases)

    def _error_of(self, outcome: Answer | Break) -> ConsentError:
        if not isinstance(outcome, Answer):
            return ConsentError(self.call.name, "network", detail=outcome.detail, cause=outcome.cause)
        kind = kind_of_status(outcome.status)
        return ConsentError(
            self.call.name,
            kind,
            code=self._code_of(kind, outcome),
            status=outcome.status,
            request_id=self.request_id_of(outcome),
            retry_after_seconds=parse_retry_after(outcome.headers.get("retry-after"), time.time()),
            detail="proxy" if outcome.status == 407 else None,
        )

    def _code_of(self, kind: ErrorKind, answer: Answer) -> str:
        body = parse_json(answer.body)
        code = body.get("error") if is_object(body) else None
        is_code = isinstance(code, str) and _CODE.fullmatch(code) is not None
        return code if isinstance(code, str) and is_code and not self._tells(code) else kind

    def request_id_of(self, answer: Answer) -> str | None:
        name: str | None = answer.headers.get("x-request-id")
        return name if name and _REQUEST_ID.fullmatch(name) and not self._tells(name) else None

    def _tells(self, text: str) -> bool:
        """True if the text contains a secret of the call: a proxy may echo what it was sent."""
        secrets: Iterable[str] = (self._settings.key, *self.call.secrets)
        return any(text == secret if len(secret) < _MIN_CONTAINED else secret in text for secret in secrets)


class RequestMaker:
    """Creates requests without httpx.Client, so without cookies, redirects and proxy variables."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._user_agent = (b"user-agent", USER_AGENT.encode("ascii"))

    def make(self, course: Course, timeouts: dict[str, float]) -> httpx.Request:
        call = course.call
        headers = [
            self._user_agent,
            (b"accept", call.row.accept.encode("ascii")),
            (b"accept-encoding", b"identity"),
            # A transport that caches, such as hishel's, would answer a check after its withdrawal.
            (b"cache-control", b"no-store"),
        ]
        if call.operation != "ping":
            token = self._settings.key if call.token is None else call.token
            headers.append((b"authorization", f"Bearer {token}".encode()))
        if call.idempotency_key is not None:
            headers.append((b"idempotency-key", call.idempotency_key.encode("ascii")))
        if call.body is not None:
            headers.append((b"content-type", b"application/json"))
        return httpx.Request(
            call.row.verb,
            self._settings.bases[course.at] + call.path,
            headers=headers,
            content=None if call.body is None else json.dumps(call.body, separators=(",", ":")),
            extensions={"timeout": timeouts},
        )


def is_coded(headers: httpx.Headers) -> bool:
    """True for a coded body, which the client did not ask for and which could become very large."""
    coding: str = headers.get("content-encoding", "")
    return coding.strip().lower() not in ("", "identity")


_DETAILS: tuple[tuple[Detail, tuple[type[Exception], ...]], ...] = (
    ("tls", (ssl.SSLError,)),
    ("dns", (socket.gaierror,)),
    ("refused", (ConnectionRefusedError, TimeoutError, httpx.ConnectTimeout)),
    ("reset", (ConnectionError, httpx.ReadError, httpx.WriteError)),
    ("protocol", (httpx.RemoteProtocolError,)),
    ("proxy", (httpx.ProxyError,)),
    ("refused", (OSError,)),
)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The exception with its causes; anyio groups those of several addresses."""
    if error is not None:
        yield error
        for inner in getattr(error, "exceptions", ()):
            yield from _chain(inner)
        yield from _chain(error.__cause__ or error.__context__)


def break_of(error: Exception, has_head: bool) -> Break:
    """Maps an exception of httpx to a failure; `has_head` is true after the head of the answer."""
    ended = isinstance(error, (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError))
    chain = list(_chain(error))
    detail = next(
        (name for name, types in _DETAILS for one in chain if isinstance(one, types)),
        None,
    )
    if detail == "protocol" and "disconnected" in str(error):
        detail = "reset"
    system = next((one for one in chain if isinstance(one, OSError) and one.errno is not None), None)
    # A copy: the original leads to the request with its key.
    cause = type(system)(*system.args[:2]) if system else None
    return Break("stale" if ended and not has_head else "broken", detail, cause)
