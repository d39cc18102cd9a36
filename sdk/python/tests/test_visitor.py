from __future__ import annotations

import threading
import urllib.request
from collections.abc import Callable
from email.message import Message
from types import SimpleNamespace
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import httpx
import pytest
from starlette.requests import Request

from gpd_consent import ConsentClient, ConsentError
from gpd_consent.fake import FakeConsent
from support import KEY, client_of, kind_of

PURPOSES = ["ads", "newsletter", "support"]


class Visit:
    """A person who has granted two purposes, of which one ignores the signal, and a clock."""

    def __init__(self) -> None:
        self.now = 1_767_225_600.0
        self.fake = FakeConsent(cookie_domain="shop.example", clock=lambda: self.now)
        self.fake.set_gpc_policy("support", "ignore")
        self.fake.grant("u-1", ["newsletter", "support"])
        self.cookie = self.fake.cookie_for("u-1")


def _environ(headers: dict[str, str]) -> dict[str, Any]:
    named = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
    return {"wsgi.version": (1, 0), "REQUEST_METHOD": "GET", **named}


def _scope(headers: dict[str, str]) -> dict[str, Any]:
    pairs = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    return {"type": "http", "headers": pairs}


def _message(headers: dict[str, str]) -> Message:
    message = Message()
    for name, value in headers.items():
        message[name] = value
    return message


REQUESTS: dict[str, Callable[[dict[str, str]], object]] = {
    "a mapping": lambda headers: headers,
    "a mapping of lists": lambda headers: {name: [value] for name, value in headers.items()},
    "a request with headers": lambda headers: SimpleNamespace(headers=headers),
    "httpx": lambda headers: httpx.Request("GET", "http://shop.example", headers=headers),
    "http.server": lambda headers: SimpleNamespace(headers=_message(headers)),
    "WSGI": _environ,
    "ASGI": _scope,
    "Starlette": lambda headers: Request(_scope(headers)),
}


@pytest.mark.parametrize("request_of", REQUESTS.values(), ids=REQUESTS)
def test_it_reads_requests_of_many_kinds(request_of: Callable[[dict[str, str]], object]) -> None:
    visit = Visit()
    asked = visit.fake.may(request_of({"Cookie": visit.cookie}), PURPOSES)
    assert asked.purposes == ("newsletter", "support")
    under_gpc = request_of({"Cookie": visit.cookie, "Sec-GPC": "1"})
    assert visit.fake.may(under_gpc, PURPOSES).purposes == ("support",)
    assert visit.fake.may(request_of({}), PURPOSES).purposes == ()


def test_two_headers_are_one_cookie() -> None:
    visit = Visit()
    scope = {"type": "http", "headers": [(b"cookie", b"a=b"), (b"cookie", visit.cookie.encode())]}
    assert visit.fake.may(scope, PURPOSES).allows("newsletter")


def test_it_renders_in_a_wsgi_server() -> None:
    visit = Visit()

    def app(environ: dict[str, Any], start: Callable[..., object]) -> list[bytes]:
        start("200 OK", [])
        return [repr(visit.fake.may(environ, PURPOSES).purposes).encode()]

    class Quiet(WSGIRequestHandler):
        def log_message(self, *_args: object) -> None: ...

    with make_server("127.0.0.1", 0, app, handler_class=Quiet) as server:
        threading.Thread(target=server.handle_request).start()
        request = urllib.request.Request(
            f"http://127.0.0.1:{server.server_port}/", headers={"Cookie": visit.cookie, "Sec-GPC": "1"}
        )
        with urllib.request.urlopen(request) as response:  # noqa: S310
            assert response.read() == b"('support',)"


@pytest.mark.parametrize("request_", [None, "cookie", 7])
def test_it_refuses_what_is_no_request(request_: object) -> None:
    assert kind_of(lambda: Visit().fake.may(request_, PURPOSES)) == "invalid-request invalid-request"
    assert kind_of(lambda: Visit().fake.may({}, "ads")) == "invalid-request invalid-request"


def test_permissions_are_no_condition() -> None:
    with pytest.raises(TypeError):
        bool(Visit().fake.may({}, PURPOSES))


def test_it_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    visit = Visit()
    client = ConsentClient("http://127.0.0.1:1", KEY)
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    for call in (
        lambda: client.read_state(None),
        lambda: client.current_state(None),
        lambda: client.may({}, PURPOSES),
        lambda: visit.fake.cookie_for("u-1"),
    ):
        assert kind_of(call) == "config no-cryptography"
    with pytest.raises(ConsentError, match=r"pip install 'gpd-consent\[proofs\]'"):
        client.read_state(None)


def test_the_fake_renews_a_cookie_as_the_server_does() -> None:
    visit = Visit()
    fake = visit.fake
    assert fake.current_state(visit.cookie).set_cookie is None
    fake.withdraw("u-1", ["newsletter"])
    # The cookie itself says so for five minutes: the banner replaces it at once.
    assert fake.may({"cookie": visit.cookie}, PURPOSES).allows("newsletter")
    assert fake.may({"cookie": visit.cookie}, PURPOSES, principal_id="u-1").purposes == ("support",)
    visit.now += 300
    assert fake.read_state(visit.cookie) is None
    current = fake.current_state(visit.cookie)
    assert (current.purposes, current.seq) == (("support",), 3)
    assert current.set_cookie is not None
    assert current.set_cookie.endswith("; SameSite=Lax; Secure; Domain=shop.example")
    renewed = fake.read_state(current.set_cookie.split(";")[0])
    assert renewed is not None
    assert (renewed.purposes, renewed.at) == (("support",), "2026-01-01T00:05:00.000Z")


def test_the_fake_is_as_strict_as_the_client() -> None:
    visit = Visit()
    assert Visit().fake.read_state(visit.cookie) is None
    assert visit.fake.read_state(visit.cookie[:-2]) is None
    assert visit.fake.read_state(f"{visit.cookie}; {visit.cookie}") is None
    visit.now -= 61
    assert visit.fake.read_state(visit.cookie) is None


def test_the_fake_fails_as_a_server_that_is_gone() -> None:
    visit = Visit()
    visit.fake.set_unavailable(True)
    assert visit.fake.read_state(visit.cookie) is None
    assert visit.fake.may({"cookie": visit.cookie}, PURPOSES).purposes == ()
    strict = FakeConsent(on_unavailable="error")
    strict.set_unavailable(True)
    cookie = strict.cookie_for("u-1")
    assert strict.read_state(cookie) is None
    assert kind_of(lambda: strict.current_state(cookie)) == "network network"
    assert kind_of(lambda: strict.may({}, PURPOSES, principal_id="u-1")) == "network network"


def test_an_error_that_is_raised_again_does_not_grow() -> None:
    visit = Visit()
    client = client_of(lambda _request: httpx.Response(503), retries=0, on_unavailable="error")
    errors = []
    for _ in range(3):
        with pytest.raises(ConsentError) as raised:
            client.may({"cookie": visit.cookie}, PURPOSES)
        errors.append(len(raised.traceback))
    assert errors[1] == errors[2]
