"""The transport of the blocking client."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any, cast

import httpx

from ._course import Answer, Break, Call, Course, RequestMaker, break_of, is_coded
from ._deadline import Budget, DeadlineTransport
from ._errors import ConsentError
from ._options import Settings


class Transport:
    def __init__(self, settings: Settings, http: httpx.BaseTransport, *, owned: bool) -> None:
        """`owned`: `close` closes the connections too. Otherwise they belong to the caller."""
        self._requests = RequestMaker(settings)
        self._settings = settings
        self._preferred = 0
        """Place of the address that answered last."""
        self._http = http
        self._owned = owned
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._running = 0

    def begin(self, method: str, _args: Mapping[str, Any]) -> None:
        if self._closing.is_set():
            raise ConsentError(method, "config", code="closed")

    def send(self, call: Call, seconds: float | None) -> Answer | ConsentError:
        name = call.name
        course = Course(call, self._settings, seconds, self._preferred)
        with self._lock:
            if self._closing.is_set():
                return ConsentError(name, "config", code="closed")
            self._running += 1
        try:
            outcome = self._attempts(course)
            self._preferred = course.at
            return outcome
        finally:
            with self._lock:
                self._running -= 1
                last = self._closing.is_set() and self._running == 0
            if last:
                self._give_back()

    def close(self) -> None:
        """Cancels running calls; the last one closes the connections."""
        with self._lock:
            if self._closing.is_set():
                return
            self._closing.set()
            idle = self._running == 0
        if idle:
            self._give_back()
        elif isinstance(self._http, DeadlineTransport):
            self._http.interrupt()

    def _give_back(self) -> None:
        if self._owned:
            self._http.close()

    def _attempts(self, course: Course) -> Answer | ConsentError:
        while True:
            outcome = self._attempt(course)
            if self._closing.is_set() and not isinstance(outcome, Answer):
                return ConsentError(course.call.name, "config", code="closed")
            step = course.judge(outcome)
            if not isinstance(step, float):
                return step
            if step > 0 and self._closing.wait(step):
                return ConsentError(course.call.name, "config", code="closed")

    def _attempt(self, course: Course) -> Answer | Break:
        if course.remaining() <= 0:
            return Break("timeout")
        budget = Budget.until(course.deadline)
        timeouts = {"connect": budget, "read": budget, "write": budget, "pool": budget}
        request = self._requests.make(course, cast("dict[str, float]", timeouts))
        has_head = False
        try:
            response = self._http.handle_request(request)
            has_head = True
            try:
                body = self._read(response, course)
            finally:
                response.close()
        # A transport may raise anything; the caller gets only errors of this package.
        except Exception as error:
            return Break("timeout") if course.remaining() <= 0 else break_of(error, has_head)
        return Answer(response.status_code, response.headers, body)

    @staticmethod
    def _read(response: httpx.Response, course: Course) -> bytes | None:
        """None if it is too large or coded; closing the response then closes the connection."""
        if is_coded(response.headers):
            return None
        body = bytearray()
        for chunk in cast("Iterable[bytes]", response.stream):
            body += chunk
            if len(body) > course.call.max_bytes:
                return None
            # Needed only for a transport of the caller; this package's own one keeps the deadline itself.
            if course.remaining() <= 0:
                raise httpx.ReadTimeout("deadline")
        return bytes(body)
