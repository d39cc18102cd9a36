"""The transport of the blocking client."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import cast

import httpx

from ._course import MAX_BODY_BYTES, Answer, Break, Course, RequestMaker, break_of, is_coded
from ._deadline import Budget, DeadlineTransport
from ._errors import ConsentError
from ._options import Settings


class Transport:
    def __init__(self, settings: Settings, http: httpx.BaseTransport, *, owned: bool) -> None:
        """`owned`: `close` closes the connections too. Otherwise they belong to the caller."""
        self._requests = RequestMaker(settings)
        self._http = http
        self._owned = owned
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._running = 0

    def check_open(self, method: str) -> None:
        if self._closing.is_set():
            raise ConsentError(method, "config", code="closed")

    def send(self, course: Course) -> Answer | ConsentError:
        name = course.call.name
        with self._lock:
            if self._closing.is_set():
                return ConsentError(name, "config", code="closed")
            self._running += 1
        try:
            return self._attempts(course)
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
            return "timeout"
        budget = Budget.until(course.deadline)
        timeouts = {"connect": budget, "read": budget, "write": budget, "pool": budget}
        request = self._requests.make(course.call, cast("dict[str, float]", timeouts))
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
            return "timeout" if course.remaining() <= 0 else break_of(error, has_head)
        return Answer(response.status_code, response.headers, body)

    @staticmethod
    def _read(response: httpx.Response, course: Course) -> bytes | None:
        """None if it is too large or coded; closing the response then closes the connection."""
        if is_coded(response.headers):
            return None
        body = bytearray()
        for chunk in cast("Iterable[bytes]", response.stream):
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                return None
            # Needed only for a transport of the caller; this package's own one keeps the deadline itself.
            if course.remaining() <= 0:
                raise httpx.ReadTimeout("deadline")
        return bytes(body)
