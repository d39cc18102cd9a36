"""One call without input and output: the request, and the meaning of an outcome (SPEC.md sections 3 to 5).

The blocking and the asynchronous transport share it, so that they cannot differ.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from random import random
from typing import Literal

import httpx

from ._errors import ConsentError, ErrorKind, kind_of_status
from ._json import is_object, parse_json
from ._options import Settings
from ._schedule import is_retryable, parse_retry_after, wait_before
from ._version import USER_AGENT

MAX_BODY_BYTES = 4 * 1024 * 1024
_CODE = re.compile(r"[a-z][a-z0-9-]{0,63}")
_REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MIN_CONTAINED = 4
"""Shorter principal ids are only compared as a whole, because many words contain them."""


@dataclass(frozen=True, slots=True, repr=False)
class Call:
    name: str
    """Name of the method, for errors."""
    method: Literal["GET", "POST"]
    path: str
    statuses: tuple[int, ...]
    """Statuses of a successful answer."""
    seconds: float
    body: bytes | None = None
    accept: str = "application/json"
    idempotency_key: str | None = None
    authorized: bool = True
    principals: tuple[str, ...] = ()
    """Principal ids of the call: they must not be in an error."""


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """An answer of any status. The body is None if it was too large or coded."""

    status: int
    headers: httpx.Headers
    body: bytes | None


Break = Literal["timeout", "stale", "broken"]
"""`stale`: the connection was closed before an answer came."""


class Course:
    """Deadline, attempts and waits of one call."""

    __slots__ = ("_replayed", "_retry", "_settings", "call", "deadline")

    def __init__(self, call: Call, settings: Settings, seconds: float | None) -> None:
        self.call = call
        # The timeout of the call replaces that of the client, shorter or longer.
        self.deadline = time.monotonic() + (call.seconds if seconds is None else seconds)
        self._settings = settings
        self._retry = 1
        self._replayed = False

    def remaining(self) -> float:
        return self.deadline - time.monotonic()

    def judge(self, outcome: Answer | Break) -> Answer | ConsentError | float:
        """Returns the end of the call, or the seconds to wait before the next attempt."""
        if isinstance(outcome, Answer) and outcome.status in self.call.statuses:
            return outcome
        if outcome == "timeout":
            return ConsentError(self.call.name, "timeout")
        if outcome == "stale" and not self._replayed:
            self._replayed = True
            return 0.0
        error = self._error_of(outcome)
        retryable = not isinstance(outcome, Answer) or is_retryable(outcome.status)
        if not retryable or self._retry > self._settings.retries:
            return error
        wait = wait_before(self._retry, error.retry_after_seconds, self.remaining(), random())  # noqa: S311
        self._retry += 1
        return error if wait is None else wait

    def _error_of(self, outcome: Answer | Break) -> ConsentError:
        if not isinstance(outcome, Answer):
            return ConsentError(self.call.name, "network")
        kind = kind_of_status(outcome.status)
        return ConsentError(
            self.call.name,
            kind,
            code=self._code_of(kind, outcome),
            status=outcome.status,
            request_id=self.request_id_of(outcome),
            retry_after_seconds=parse_retry_after(outcome.headers.get("retry-after"), time.time()),
        )

    def malformed(self, answer: Answer) -> ConsentError:
        request_id = self.request_id_of(answer)
        return ConsentError(self.call.name, "response", status=answer.status, request_id=request_id)

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
        secrets: Iterable[str] = (self._settings.key, *self.call.principals)
        return any(text == secret if len(secret) < _MIN_CONTAINED else secret in text for secret in secrets)


class RequestMaker:
    """Creates requests without httpx.Client, so without cookies, redirects and proxy variables."""

    def __init__(self, settings: Settings) -> None:
        self._base = settings.base
        self._authorization = (b"authorization", f"Bearer {settings.key}".encode("ascii"))
        self._user_agent = (b"user-agent", USER_AGENT.encode("ascii"))

    def make(self, call: Call, timeouts: dict[str, float]) -> httpx.Request:
        accept = (b"accept", call.accept.encode("ascii"))
        headers = [
            self._user_agent,
            accept,
            (b"accept-encoding", b"identity"),
            # A transport that caches, such as hishel's, would answer a check after its withdrawal.
            (b"cache-control", b"no-store"),
        ]
        if call.authorized:
            headers.append(self._authorization)
        if call.idempotency_key is not None:
            headers.append((b"idempotency-key", call.idempotency_key.encode("ascii")))
        if call.body is not None:
            headers.append((b"content-type", b"application/json"))
        return httpx.Request(
            call.method,
            self._base + call.path,
            headers=headers,
            content=call.body,
            extensions={"timeout": timeouts},
        )


def is_coded(headers: httpx.Headers) -> bool:
    """True for a coded body, which the client did not ask for and which could become very large."""
    coding: str = headers.get("content-encoding", "")
    return coding.strip().lower() not in ("", "identity")


def break_of(error: Exception, has_head: bool) -> Break:
    """Maps an exception of httpx to a failure; `has_head` is true after the head of the answer."""
    ended = isinstance(error, (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError))
    return "stale" if ended and not has_head else "broken"
