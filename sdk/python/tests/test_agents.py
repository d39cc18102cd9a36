from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from io import BytesIO
from typing import Any
from wsgiref.util import setup_testing_defaults

import httpx
import pytest
from starlette.requests import Request

from gpd_consent import AgentMiddleware, ConsentClient, ConsentError, agent_wsgi
from gpd_consent.fake import AsyncFakeConsent, FakeConsent
from support import KEY

SIGNED = {"Signature": "sig1=:AAAA:", "Signature-Input": 'sig1=("x-two")', "X-Two": "1", "X-Other": "2"}


def _environ() -> dict[str, Any]:
    named = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in SIGNED.items()}
    target = {"PATH_INFO": "/caf\xc3\xa9", "SCRIPT_NAME": "/shop", "QUERY_STRING": "a=%7E"}
    environ = {
        "HTTP_HOST": "shop.example",
        "REQUEST_METHOD": "PUT",
        "wsgi.url_scheme": "https",
        **target,
        **named,
    }
    setup_testing_defaults(environ)
    return environ


def _scope() -> dict[str, Any]:
    pairs = [
        (name.lower().encode(), value.encode()) for name, value in {**SIGNED, "Host": "shop.example"}.items()
    ]
    target = {"path": "/shop/café", "raw_path": b"/shop/caf%C3%A9", "query_string": b"a=%7E"}
    return {"type": "http", "method": "PUT", "scheme": "https", "headers": pairs, **target}


URL = "https://shop.example/shop/caf%C3%A9?a=%7E"
REQUESTS: dict[str, Callable[[], object]] = {
    "WSGI": _environ,
    "ASGI": _scope,
    "Starlette": lambda: Request(_scope()),
    "a description": lambda: {"method": "PUT", "url": URL, "headers": SIGNED},
}


@pytest.mark.parametrize("name", REQUESTS)
def test_it_describes_the_request(name: str) -> None:
    sent: list[Any] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(json.loads(request.content))
        return httpx.Response(500)

    client = ConsentClient("http://gpd.example", KEY, transport=httpx.MockTransport(answer))
    for origin in (None, "https://www.shop.example/"):
        assert client.agent(REQUESTS[name](), origin=origin).reason == "unavailable"
    headers = {
        "signature": ["sig1=:AAAA:"],
        "signature-input": ['sig1=("x-two")'],
        "x-two": ["1"],
    }
    assert sent == [
        {"method": "PUT", "url": url, "headers": headers}
        for url in (URL, URL.replace("shop.", "www.shop.", 1))
    ]


@pytest.mark.parametrize("request_", [None, {}, {"method": "GET", "headers": {}}])
def test_it_refuses_what_is_no_request(request_: object) -> None:
    with pytest.raises(ConsentError) as error:
        FakeConsent().agent(request_)
    assert error.value.kind == "invalid-request"


def test_the_middlewares_hand_on_the_answer_and_refuse_without_the_reason() -> None:
    seen: list[str] = []
    fake, awaited = FakeConsent(), AsyncFakeConsent()

    def app(environ: dict[str, Any], start_response: Callable[..., object]) -> list[bytes]:
        seen.append(environ["gpd.agent"].status)
        start_response("200 OK", [])
        return [b"in"]

    async def asgi(scope: Any, _receive: Any, _send: Any) -> None:
        seen.append(scope["gpd.agent"].status)

    def ask() -> tuple[str, bytes]:
        statuses: list[str] = []
        wsgi = agent_wsgi(app, fake, allows=lambda answer: answer.status != "invalid")
        body = b"".join(
            wsgi({**_environ(), "wsgi.input": BytesIO()}, lambda status, _: statuses.append(status))
        )
        return statuses[0], body

    async def ask_async() -> list[Any]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message.get("status") or message["body"])

        await AgentMiddleware(asgi, awaited, allows=lambda answer: answer.status != "invalid")(
            _scope(), None, send
        )
        return sent

    assert ask() == ("200 OK", b"in")
    assert asyncio.run(ask_async()) == []
    for one in (fake, awaited):
        one.set_agent(status="invalid", reason="expired")
    assert ask() == ("403 Forbidden", b'{"error":"agent-refused"}')
    assert asyncio.run(ask_async()) == [403, b'{"error":"agent-refused"}']
    assert seen == ["unverified", "unverified"]
