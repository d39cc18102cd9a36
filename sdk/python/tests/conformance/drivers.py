"""Runs the same steps with the blocking and the asynchronous client."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import signal
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any, Protocol

from gpd_consent import AsyncConsentClient, ConsentClient
from gpd_consent.fake import AsyncFakeConsent, FakeConsent


class Driver(Protocol):
    @property
    def client_class(self) -> type[ConsentClient] | type[AsyncConsentClient]: ...
    @property
    def fake_class(self) -> type[FakeConsent] | type[AsyncFakeConsent]: ...
    @property
    def cancelled(self) -> type[BaseException]:
        """Cancels in the way that is usual in the language."""
        ...

    def run(self, call: Callable[[], Any], cancel_after: float | None) -> Any: ...
    def close(self) -> None: ...


@contextlib.contextmanager
def _interrupted_after(seconds: float) -> Iterator[None]:
    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class BlockingDriver:
    client_class = ConsentClient
    fake_class = FakeConsent
    cancelled: type[BaseException] = KeyboardInterrupt

    def run(self, call: Callable[[], Any], cancel_after: float | None) -> Any:
        if cancel_after is None:
            return call()
        with _interrupted_after(cancel_after):
            return call()

    def close(self) -> None:
        pass


class AsyncDriver:
    client_class = AsyncConsentClient
    fake_class = AsyncFakeConsent
    cancelled: type[BaseException] = asyncio.CancelledError

    def __init__(self) -> None:
        self._runner = asyncio.Runner()

    def run(self, call: Callable[[], Any], cancel_after: float | None) -> Any:
        async def main() -> Any:
            outcome = call()
            if not inspect.isawaitable(outcome):
                return outcome
            task = asyncio.ensure_future(outcome)
            if cancel_after is not None:
                asyncio.get_running_loop().call_later(cancel_after, task.cancel)
            return await task

        return self._runner.run(main())

    def close(self) -> None:
        self._runner.close()


DRIVERS: Mapping[str, Callable[[], Driver]] = {"blocking": BlockingDriver, "async": AsyncDriver}
