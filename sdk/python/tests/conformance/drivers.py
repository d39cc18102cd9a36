"""Runs the same steps with the blocking and the asynchronous client."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import signal
import threading
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

    def run(self, call: Callable[[], Any], cancel_when: Callable[[], Any] | None) -> Any: ...
    def close(self) -> None: ...


@contextlib.contextmanager
def _interrupted_when(wait: Callable[[], Any]) -> Iterator[None]:
    """Interrupts the main thread when a wait in another thread is over."""
    ended = threading.Event()

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    def watch() -> None:
        wait()
        if not ended.is_set():
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, interrupt)
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        signal.signal(signal.SIGALRM, before)


class BlockingDriver:
    client_class = ConsentClient
    fake_class = FakeConsent
    cancelled: type[BaseException] = KeyboardInterrupt

    def run(self, call: Callable[[], Any], cancel_when: Callable[[], Any] | None) -> Any:
        if cancel_when is None:
            return call()
        with _interrupted_when(cancel_when):
            return call()

    def close(self) -> None:
        pass


class AsyncDriver:
    client_class = AsyncConsentClient
    fake_class = AsyncFakeConsent
    cancelled: type[BaseException] = asyncio.CancelledError

    def __init__(self) -> None:
        self._runner = asyncio.Runner()

    def run(self, call: Callable[[], Any], cancel_when: Callable[[], Any] | None) -> Any:
        async def main() -> Any:
            outcome = call()
            if not inspect.isawaitable(outcome):
                return outcome
            task = asyncio.ensure_future(outcome)
            if cancel_when is not None:
                over = asyncio.get_running_loop().run_in_executor(None, cancel_when)
                over.add_done_callback(lambda _over: task.cancel())
            return await task

        return self._runner.run(main())

    def close(self) -> None:
        self._runner.close()


DRIVERS: Mapping[str, Callable[[], Driver]] = {"blocking": BlockingDriver, "async": AsyncDriver}
