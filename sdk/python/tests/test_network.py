from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from typing import Any, cast

import httpx
import pytest

from gpd_consent import AsyncConsentClient, ConsentClient, ConsentError
from gpd_consent._deadline import DeadlineTransport
from support import KEY, PERSON, client_of, kind_of


def drip(connection: socket.socket) -> None:
    """Sends a byte now and then, so that no single read takes long."""
    for byte in b"HTTP/1.1 200 OK\r\ncontent-length: 200\r\n\r\n" + b" " * 200:
        connection.sendall(bytes([byte]))
        time.sleep(0.05)


def test_a_server_that_drips_does_not_hold_a_call_beyond_its_deadline(server: Any) -> None:
    url = server(drip)
    with ConsentClient(url, KEY, timeout=0.4) as client:
        started = time.monotonic()
        decision = client.can_process(PERSON, "newsletter")
        elapsed = time.monotonic() - started
    assert decision.error is not None
    assert decision.error.kind == "timeout"
    assert 0.35 <= elapsed < 1.5


def test_the_same_with_asyncio(server: Any) -> None:
    async def main() -> None:
        async with AsyncConsentClient(server(drip), KEY, timeout=0.4) as client:
            decision = await client.can_process(PERSON, "newsletter")
        assert decision.error is not None
        assert decision.error.kind == "timeout"

    started = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - started < 2


def test_a_resolver_that_hangs_does_not_hold_a_call_beyond_its_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    released = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_more: released.wait(10) and [])
    with ConsentClient("http://gpd.example", KEY, timeout=0.3) as client:
        started = time.monotonic()
        decision = client.can_process(PERSON, "newsletter")
        elapsed = time.monotonic() - started
    released.set()
    assert decision.error is not None
    assert decision.error.kind == "timeout"
    assert elapsed < 1.5


def test_a_name_that_is_none_is_a_network_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: object, **_more: object) -> list[Any]:
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with ConsentClient("http://gpd.example", KEY, retries=0) as client:
        assert kind_of(client.ping) == "network network"


def test_the_next_address_of_a_name_is_tried(monkeypatch: pytest.MonkeyPatch, server: Any) -> None:
    text = json.dumps({"status": "ok", "version": "1"})
    url = server(
        lambda to: to.sendall(f"HTTP/1.1 200 OK\r\ncontent-length: {len(text)}\r\n\r\n{text}".encode())
    )
    port = int(url.rsplit(":", 1)[1])
    found = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, port)) for host in ("127.0.0.2", "127.0.0.1")]
    with monkeypatch.context() as patch:
        real = socket.getaddrinfo
        patch.setattr(
            socket,
            "getaddrinfo",
            lambda host, *a, **m: found if host == "gpd.example" else real(host, *a, **m),
        )
        with ConsentClient(f"http://gpd.example:{port}", KEY, retries=0) as client:
            assert client.ping().version == "1"


def test_closing_ends_what_runs_in_another_thread(server: Any) -> None:
    client = ConsentClient(server(lambda _connection: None), KEY, timeout=8)
    ended: list[str] = []
    thread = threading.Thread(target=lambda: ended.append(kind_of(lambda: client.is_allowed(PERSON, "a"))))
    thread.start()
    time.sleep(0.3)
    started = time.monotonic()
    client.close()
    thread.join(5)
    assert ended == ["config closed"]
    assert time.monotonic() - started < 2
    assert kind_of(lambda: client.is_allowed(PERSON, "a")) == "config closed"


def test_closing_ends_a_wait_before_a_retry() -> None:
    client = client_of(lambda _request: httpx.Response(503, headers={"retry-after": "5"}), timeout=8)
    timer = threading.Timer(0.2, client.close)
    timer.start()
    started = time.monotonic()
    assert kind_of(lambda: client.is_allowed(PERSON, "a")) == "config closed"
    assert time.monotonic() - started < 2


def test_closing_ends_what_runs_in_another_task(server: Any) -> None:
    async def main() -> None:
        client = AsyncConsentClient(server(lambda _connection: None), KEY, timeout=8)
        running = asyncio.create_task(client.is_allowed(PERSON, "a"))
        await asyncio.sleep(0.2)
        await client.close()
        await client.close()
        with pytest.raises(ConsentError, match="closed"):
            await running
        with pytest.raises(ConsentError, match="closed"):
            await client.ping()

    asyncio.run(main())


def test_many_threads_share_one_client(servers: dict[str, Any]) -> None:
    with ConsentClient(servers["url"], servers["keys"]["secret"], timeout=20) as client:
        reasons: list[str] = []
        ask = lambda i: reasons.append(client.can_process(f"thread-{i}", "newsletter").reason)  # noqa: E731
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert reasons == ["never-asked"] * 12


class Foreign(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """A transport of the caller that raises an exception which no transport of httpx raises."""

    closed = False

    def handle_request(self, _request: httpx.Request) -> httpx.Response:
        raise ExceptionGroup("several", [OverflowError("port")])

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return self.handle_request(request)

    def close(self) -> None:
        self.closed = True

    async def aclose(self) -> None:
        self.closed = True


def test_a_transport_that_was_handed_in_is_left_open_and_its_exceptions_are_network_errors() -> None:
    foreign = Foreign()
    with ConsentClient("http://127.0.0.1:1", KEY, transport=foreign, retries=0) as client:
        decision = client.can_process(PERSON, "a")
    assert (decision.reason, decision.error and decision.error.kind) == ("unavailable", "network")
    assert not foreign.closed

    async def main() -> None:
        async with AsyncConsentClient("http://127.0.0.1:1", KEY, transport=foreign, retries=0) as client:
            decision = await client.can_process(PERSON, "a")
        assert (decision.reason, decision.error and decision.error.kind) == ("unavailable", "network")

    asyncio.run(main())
    assert not foreign.closed


def test_proxies_of_the_environment_are_not_used(
    monkeypatch: pytest.MonkeyPatch, servers: dict[str, Any]
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with ConsentClient(servers["url"], servers["keys"]["secret"]) as client:
        assert client.ping().status == "ok"

    async def main() -> None:
        async with AsyncConsentClient(servers["url"], servers["keys"]["secret"]) as client:
            assert (await client.ping()).status == "ok"

    asyncio.run(main())


def test_a_server_whose_certificate_nobody_signed_is_not_asked(server: Any) -> None:
    url = server(lambda connection: connection.sendall(b"no TLS"))
    with ConsentClient(url.replace("http:", "https:"), KEY, retries=0) as client:
        assert kind_of(client.ping) == "network network"


def test_calls_that_were_dropped_give_their_connections_back(server: Any) -> None:
    url = server(lambda _connection: None)
    with ConsentClient(url, KEY, timeout=0.05) as client:
        for _ in range(5):
            assert client.can_process(PERSON, "a").reason == "unavailable"
        transport = cast(Any, client._sender)._http
        assert isinstance(transport, DeadlineTransport)
        assert transport._pool.connections == []

    async def main() -> None:
        async with AsyncConsentClient(url, KEY, timeout=5) as client:
            running = [asyncio.create_task(client.is_allowed(PERSON, "a")) for _ in range(5)]
            await asyncio.sleep(0.3)
            for task in running:
                task.cancel()
            outcomes = await asyncio.gather(*running, return_exceptions=True)
            assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
            transport = cast(Any, client._sender)._http
            assert isinstance(transport, httpx.AsyncHTTPTransport)
            assert transport._pool.connections == []

    asyncio.run(main())
