from __future__ import annotations

import asyncio
import copy
import gzip
import json
import pickle
import socket
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import gpd_consent
from gpd_consent import AsyncConsentClient, ConsentClient, ConsentError
from gpd_consent._course import MAX_BODY_BYTES
from gpd_consent._json import MALFORMED, parse_json

KEY = "gpd_sk_" + "k" * 43
PERSON = "someone@shop.example"
GRANTED = {"allowed": True, "reason": "granted", "proof": {"seq": 1, "hash": "ab" * 32}}
HERE = Path(__file__).parents[1]

Answer = Callable[[httpx.Request], httpx.Response]


def client_of(answer: Answer, **options: Any) -> ConsentClient:
    return ConsentClient("http://127.0.0.1:1", KEY, transport=httpx.MockTransport(answer), **options)


def says(body: object, **more: Any) -> Answer:
    return lambda _request: httpx.Response(200, json=body, **more)


def kind_of(call: Callable[[], object]) -> str:
    with pytest.raises(ConsentError) as error:
        call()
    return f"{error.value.kind} {error.value.code}"


@pytest.fixture
def server() -> Iterator[Callable[[Callable[[socket.socket], None]], str]]:
    """A server that does one thing with each connection; its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    accepted: list[socket.socket] = []
    ending = threading.Event()

    def start(serve: Callable[[socket.socket], None]) -> str:
        def run(connection: socket.socket) -> None:
            with connection:
                try:
                    connection.recv(65536)
                    serve(connection)
                    ending.wait(10)
                except OSError:
                    pass

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                accepted.append(connection)
                threading.Thread(target=run, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    ending.set()
    listener.close()


def drip(connection: socket.socket) -> None:
    """A byte every now and then: no single read lasts long."""
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


def test_a_decision_is_as_true_as_its_allowed() -> None:
    assert client_of(says(GRANTED)).can_process(PERSON, "a")
    assert not client_of(says({**GRANTED, "allowed": False})).can_process(PERSON, "a")
    assert not client_of(says({})).can_process(PERSON, "a")


def test_an_answer_of_more_than_4_mib_denies() -> None:
    large = {**GRANTED, "padding": "x" * MAX_BODY_BYTES}
    decision = client_of(says(large)).can_process(PERSON, "a")
    assert decision.error is not None
    assert decision.error.kind == "response"
    packed = gzip.compress(json.dumps(large).encode())
    headers = {"content-encoding": "gzip"}
    decision = client_of(lambda _: httpx.Response(200, content=packed, headers=headers)).can_process(
        PERSON, "a"
    )
    assert decision.error is not None
    assert decision.error.kind == "response"
    small = gzip.compress(json.dumps(GRANTED).encode())
    assert client_of(lambda _: httpx.Response(200, content=small, headers=headers)).is_allowed(PERSON, "a")


def test_a_coding_that_is_broken_is_malformed() -> None:
    class Broken(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield b"no gzip"

    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-encoding": "gzip"}, stream=Broken())

    decision = client_of(answer).can_process(PERSON, "a")
    assert decision.error is not None
    assert (decision.error.kind, decision.error.status) == ("response", 200)


@pytest.mark.parametrize(
    "text",
    [b"NaN", b'{"a": Infinity}', b"\xff", b"\xef\xbb\xbf{}", b"[" * 100_000, b"1" * 10_000, b"{'a': 1}"],
)
def test_what_python_would_read_or_choke_on_is_malformed(text: bytes) -> None:
    assert parse_json(text) is MALFORMED


@pytest.mark.parametrize(
    "wrong",
    [
        {"allowed": 1},
        {"proof": {"seq": True, "hash": "ab" * 32}},
        {"proof": {"seq": 2**53, "hash": "ab" * 32}},
        {"proof": {"seq": 1, "hash": "ab" * 32 + "\n"}},
        {"policyVersion": "1"},
        {"expiresAt": 5},
    ],
)
def test_no_decision_with_a_field_of_another_type(wrong: dict[str, object]) -> None:
    assert client_of(says({**GRANTED, **wrong})).can_process(PERSON, "a").reason == "unavailable"


@pytest.mark.parametrize(
    "wrong",
    [{"requestId": "req_2"}, {"class": None}, {"restricted": "no"}, {"rules": [1]}, {"confidence": "1"}],
)
def test_no_verdict_is_believed_with_another_request_or_type(wrong: dict[str, object]) -> None:
    verdict = {
        "requestId": "req_1",
        "class": "human",
        "reason": "ok",
        "decidedAt": "now",
        "restricted": False,
    }
    assert client_of(says({**verdict, "later": 1})).decision("req_1").raw["later"] == 1
    assert kind_of(lambda: client_of(says({**verdict, **wrong})).decision("req_1")) == "response response"


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.is_allowed(None, "a"),
        lambda client: client.is_allowed(7, "a"),
        lambda client: client.is_allowed("u", "a", min_seq=True),
        lambda client: client.is_allowed("u", "a", min_seq=1.5),
        lambda client: client.can_process_many("many"),
        lambda client: client.can_process_many([None]),
        lambda client: client.can_process_many([("u", "a", "b")]),
        lambda client: client.grant("u", "newsletter"),
        lambda client: client.grant("u", [""]),
        lambda client: client.grant("u", ["a"], policy_version=object()),
        lambda client: client.grant("u", ["a"], idempotency_key="a\n"),
        lambda client: client.receipt(2**53),
        lambda client: client.decision("req_1\n"),
        lambda client: client.sessions.create(""),
    ],
)
def test_what_callers_without_types_hand_in_is_refused_before_any_call(call: Callable[[Any], object]) -> None:
    def fail(_request: httpx.Request) -> httpx.Response:
        raise AssertionError("it was sent")

    assert kind_of(lambda: call(client_of(fail))) == "invalid-request invalid-request"


@pytest.mark.parametrize("seconds", [0, -1, 601, float("nan"), True, "2"])
def test_a_time_that_is_none_is_refused(seconds: Any) -> None:
    client = client_of(says(GRANTED))
    assert kind_of(lambda: client.is_allowed(PERSON, "a", timeout=seconds)) == "config config"
    assert kind_of(lambda: client_of(says(GRANTED), timeout=seconds)) == "config config"


def test_the_time_of_a_call_counts_only_when_it_is_the_earlier() -> None:
    def slow(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(503, headers={"retry-after": "1"})

    started = time.monotonic()
    assert client_of(slow, timeout=0.5).can_process(PERSON, "a", timeout=60).reason == "unavailable"
    assert time.monotonic() - started < 0.5


def test_neither_client_nor_error_shows_the_key_or_what_was_sent() -> None:
    def broken(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError(f"{request.headers} {request.content!r}", request=request)

    client = client_of(broken, on_unavailable="error", retries=0)
    shown = repr(client) + str(client) + repr(client._settings)
    with pytest.raises(ConsentError) as error:
        client.is_allowed(PERSON, "a")
    assert error.value.__cause__ is None
    assert error.value.__context__ is None
    shown += repr(error.value) + repr(vars(error.value))
    assert KEY not in shown
    assert PERSON not in shown


def test_the_message_and_no_value_survive_pickle_and_copy() -> None:
    error = ConsentError("grant", "rate-limited", status=429, request_id="req_1", retry_after_seconds=3)
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301
        assert str(other) == str(error) == "grant: rate-limited, status 429"
        assert (other.kind, other.request_id, other.retry_after_seconds) == ("rate-limited", "req_1", 3)


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


def test_verify_proof_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert kind_of(lambda: gpd_consent.verify_proof("", vkey="")) == "config no-cryptography"


@pytest.mark.parametrize("text", [None, 7, "\ud800", "c2sp.org/tlog-proof@v1\n\n"])
def test_a_proof_that_is_no_text_is_malformed(text: Any) -> None:
    vkey = json.loads((HERE.parent / "conformance" / "cases.json").read_text(encoding="utf-8"))
    known = next(case for case in vkey["cases"] if case["name"] == "proof-verifies")["steps"][0]["args"][
        "vkey"
    ]
    assert kind_of(lambda: gpd_consent.verify_proof(text, vkey=known)) == "proof malformed-proof"
    assert kind_of(lambda: gpd_consent.verify_proof("", vkey=text)) == "proof malformed-key"


def test_a_header_that_came_twice_is_refused() -> None:
    pairs = [
        ("webhook-id", "a"),
        ("Webhook-Id", "b"),
        ("webhook-timestamp", "1"),
        ("webhook-signature", "v1,"),
    ]
    secret = "whsec_AAcOFRwjKjE4P0ZNVFtiaXB3foWMk5qhqK+2vcTL0tk="
    for headers in (pairs, httpx.Headers(pairs)):
        call = lambda given=headers: gpd_consent.verify_webhook(b"{}", given, secrets=secret)  # noqa: E731
        assert kind_of(call) == "proof missing-header"


def test_the_version_is_that_of_the_package() -> None:
    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert gpd_consent.__version__ == project["version"]
