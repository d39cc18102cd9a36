"""Blocking connections that keep one deadline for connecting, sending and reading together.

A timeout of httpx applies to each read: a server that sends a byte now and then could block a call.
"""

from __future__ import annotations

import contextlib
import ipaddress
import queue
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any
from weakref import WeakSet

import httpcore
import httpx


class Budget(float):
    """The remaining seconds at its creation, and the time when they end."""

    at: float

    @classmethod
    def until(cls, at: float) -> Budget:
        budget = cls(max(at - time.monotonic(), 0.001))
        budget.at = at
        return budget


def _remaining(timeout: float | None, over: type[httpcore.TimeoutException]) -> float | None:
    if not isinstance(timeout, Budget):
        return timeout
    remaining = timeout.at - time.monotonic()
    # A socket with timeout 0 would not block at all.
    if remaining <= 0:
        raise over
    return remaining


class _Open:
    """The open streams, so that another thread can cancel running calls."""

    def __init__(self) -> None:
        self._streams: WeakSet[_Stream] = WeakSet()
        self._lock = threading.Lock()
        self._interrupted = False

    def add(self, stream: _Stream) -> None:
        with self._lock:
            self._streams.add(stream)
            late = self._interrupted
        if late:
            stream.interrupt()

    def interrupt(self) -> None:
        with self._lock:
            self._interrupted = True
            streams = list(self._streams)
        for stream in streams:
            stream.interrupt()


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, streams: _Open) -> None:
        self._inner = inner
        self._streams = streams
        streams.add(self)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _remaining(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _remaining(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        remaining = _remaining(timeout, httpcore.ConnectTimeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, remaining), self._streams)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)

    def interrupt(self) -> None:
        """Wakes a reading thread. Closing would free the descriptor while that thread still uses it."""
        with contextlib.suppress(OSError):
            self.get_extra_info("socket").shutdown(socket.SHUT_RDWR)


def _resolve(host: str, port: int, timeout: float | None) -> list[str]:
    """The system's resolver has no timeout, so it runs in a thread that may be abandoned."""
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(host)
        return [host]
    found: queue.SimpleQueue[list[str] | OSError] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found.put(list(dict.fromkeys(str(answer[4][0]) for answer in answers)))
        except OSError as error:
            found.put(error)
        except UnicodeError:
            found.put(socket.gaierror(socket.EAI_NONAME, "the name cannot be looked up"))

    threading.Thread(target=look_up, name="gpd-consent-resolver", daemon=True).start()
    try:
        addresses = found.get(timeout=timeout)
    except queue.Empty:
        raise httpcore.ConnectTimeout from None
    if isinstance(addresses, OSError):
        failed = httpcore.ConnectError()
        # The context, because the pool of httpcore removes the cause.
        failed.__context__ = addresses
        raise failed
    return addresses


class _Backend(httpcore.NetworkBackend):
    def __init__(self) -> None:
        self._inner = httpcore.SyncBackend()
        self.streams = _Open()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        addresses = _resolve(host, port, _remaining(timeout, httpcore.ConnectTimeout))
        for position, address in enumerate(addresses):
            remaining = _remaining(timeout, httpcore.ConnectTimeout)
            # An address that never answers must not use up the time for the others.
            share = None if remaining is None else remaining / (len(addresses) - position)
            try:
                stream = self._inner.connect_tcp(address, port, share, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if position == len(addresses) - 1:
                    raise
                continue
            return _Stream(stream, self.streams)
        raise httpcore.ConnectError


@contextlib.contextmanager
def _as_httpx() -> Iterator[None]:
    try:
        yield
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
        # Both libraries use these names.
        raise getattr(httpx, type(error).__name__)(str(error)) from error


class _Body(httpx.SyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        with _as_httpx():
            yield from self._stream

    def close(self) -> None:
        self._stream.close()


class DeadlineTransport(httpx.BaseTransport):
    """A pool of HTTP/1.1 connections. A Budget as timeout limits the whole request."""

    def __init__(self, ssl_context: ssl.SSLContext, limits: httpx.Limits) -> None:
        self._backend = _Backend()
        self._pool = httpcore.ConnectionPool(
            ssl_context=ssl_context,
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=self._backend,
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        inner_request = httpcore.Request(
            request.method,
            httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _as_httpx():
            response = self._pool.handle_request(inner_request)
        return httpx.Response(response.status, headers=response.headers, stream=_Body(response.stream))

    def interrupt(self) -> None:
        """Cancels running calls; `close` may follow when they have ended."""
        self._backend.streams.interrupt()

    def close(self) -> None:
        self._pool.close()
