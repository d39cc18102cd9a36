"""The transport of the asynchronous client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Mapping
from typing import Any, cast

import httpx

from ._course import Answer, Break, Call, Course, RequestMaker, break_of, is_coded
from ._errors import ConsentError
from ._options import Settings


class AsyncTransport:
    """Works in one event loop only, to which its connections belong."""

    def __init__(self, settings: Settings, http: httpx.AsyncBaseTransport, *, owned: bool) -> None:
        """`owned`: `close` closes the connections too. Otherwise they belong to the caller."""
        self._requests = RequestMaker(settings)
        self._settings = settings
        self._preferred = 0
        """Place of the address that answered last."""
        self._http = http
        self._owned = owned
        self._closed = False
        self._running: set[asyncio.Timeout] = set()
        self._idle = asyncio.Event()

    def begin(self, method: str, _args: Mapping[str, Any]) -> None:
        if self._closed:
            raise ConsentError(method, "config", code="closed")

    async def send(self, call: Call, seconds: float | None) -> Answer | ConsentError:
        name = call.name
        course = Course(call, self._settings, seconds, self._preferred)
        if self._closed:
            return ConsentError(name, "config", code="closed")
        limit = asyncio.timeout(course.remaining())
        try:
            async with limit:
                self._running.add(limit)
                outcome = await self._attempts(course)
                self._preferred = course.at
                return outcome
        except TimeoutError:
            pass
        finally:
            self._running.discard(limit)
            if not self._running:
                self._idle.set()
        if self._closed:
            return ConsentError(name, "config", code="closed")
        ended = course.judge(Break("timeout"))
        self._preferred = course.at
        return ended if isinstance(ended, ConsentError) else ConsentError(name, "timeout")

    async def close(self) -> None:
        """Cancels running calls and closes the connections."""
        if self._closed:
            return
        self._closed = True
        if self._running:
            self._idle.clear()
            now = asyncio.get_running_loop().time()
            for limit in self._running:
                if not limit.expired():
                    limit.reschedule(now)
            await self._idle.wait()
        if self._owned:
            await self._http.aclose()

    async def _attempts(self, course: Course) -> Answer | ConsentError:
        while True:
            step = course.judge(await self._attempt(course))
            if not isinstance(step, float):
                return step
            if step > 0:
                await asyncio.sleep(step)

    async def _attempt(self, course: Course) -> Answer | Break:
        # The scope around all attempts is the only timeout; single reads have none.
        request = self._requests.make(course, {})
        has_head = False
        try:
            response = await self._http.handle_async_request(request)
            has_head = True
            try:
                body = await self._read(response, course.call.max_bytes)
            finally:
                await response.aclose()
        # A transport may raise anything, even an ExceptionGroup of anyio.
        except Exception as error:
            return break_of(error, has_head)
        return Answer(response.status_code, response.headers, body)

    @staticmethod
    async def _read(response: httpx.Response, max_bytes: int) -> bytes | None:
        """None if it is too large or coded; closing the response then closes the connection."""
        if is_coded(response.headers):
            return None
        body = bytearray()
        async for chunk in cast("AsyncIterable[bytes]", response.stream):
            body += chunk
            if len(body) > max_bytes:
                return None
        return bytes(body)
