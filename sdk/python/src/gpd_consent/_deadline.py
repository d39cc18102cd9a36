"""Blocking connections that keep one deadline for connecting, sending and reading together.

A timeout of httpx is that of each single read: a server that sends a byte now and then would hold a call.
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
    """The seconds that were left when it was made, and the moment when they are over."""

    at: float

    @classmethod
    def until(cls, at: float) -> Budget:
        budget = cls(max(at - time.monotonic(), 0.001))
        budget.at = at
        return budget


def _left(timeout: float | None, over: type[httpcore.TimeoutException]) -> float | None:
    if not isinstance(timeout, Budget):
        return timeout
    left = timeout.at - time.monotonic()
    # A socket whose timeout is 0 does not block at all.
    if left <= 0:
        raise over
    return left


class _Open:
    """The streams that are open, so that another thread can end what is running."""

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
        return self._inner.read(max_bytes, _left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = _left(timeout, httpcore.ConnectTimeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, left), self._streams)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)

    def interrupt(self) -> None:
        """Wakes a thread that reads; closing would free the number of the socket under its feet."""
        with contextlib.suppress(OSError):
            self.get_extra_info("socket").shutdown(socket.SHUT_RDWR)


def _resolve(host: str, port: int, timeout: float | None) -> list[str]:
    """The resolver of the system knows no deadline: it runs in a thread that may be left behind."""
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(host)
        return [host]
    found: queue.SimpleQueue[list[str]] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            answers = []
        found.put(list(dict.fromkeys(str(answer[4][0]) for answer in answers)))

    threading.Thread(target=look_up, name="gpd-consent-resolver", daemon=True).start()
    try:
        addresses = found.get(timeout=timeout)
    except queue.Empty:
        raise httpcore.ConnectTimeout from None
    if not addresses:
        raise httpcore.ConnectError
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
        addresses = _resolve(host, port, _left(timeout, httpcore.ConnectTimeout))
        for position, address in enumerate(addresses):
            left = _left(timeout, httpcore.ConnectTimeout)
            # An address that swallows everything must not use up the time of the others.
            share = None if left is None else left / (len(addresses) - position)
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
        # The two libraries name them alike.
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
    """A pool of HTTP/1.1 connections; a Budget as the timeout of a request bounds the whole of it."""

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
        sent = httpcore.Request(
            request.method,
            httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _as_httpx():
            response = self._pool.handle_request(sent)
        return httpx.Response(response.status, headers=response.headers, stream=_Body(response.stream))

    def interrupt(self) -> None:
        """Ends what is running; `close` may follow when it has ended."""
        self._backend.streams.interrupt()

    def close(self) -> None:
        self._pool.close()
