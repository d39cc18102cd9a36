"""Describes a request to gpd, which judges who signed it (Web Bot Auth); and middlewares that ask once."""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any, Protocol
from urllib.parse import quote

from ._errors import ConsentError
from ._request import pairs_of, values_of
from ._types import AgentAnswer

_SIGNATURE = ("signature", "signature-input", "signature-agent")
_COVERED = re.compile(r"\"([a-z0-9!#$%&'*+.^_`|~-]+)\"")


def _signed_headers(pairs: list[tuple[Any, Any]]) -> dict[str, list[str]]:
    """The headers of the signature and those that it covers. Others are not gpd's business."""
    covered = _COVERED.findall(",".join(values_of(pairs, "signature-input")))
    found = {name: list(values_of(pairs, name)) for name in (*_SIGNATURE, *covered)}
    return {name: values for name, values in found.items() if values}


def _of_asgi(scope: Mapping[str, Any], host: str) -> tuple[str, str, str]:
    path = scope.get("raw_path") or quote(scope["path"]).encode()
    query = scope.get("query_string", b"")
    target = (path.split(b"?")[0] + (b"?" + query if query else b"")).decode("latin-1")
    return scope["method"], f"{scope.get('scheme', 'http')}://{host}", target


def _of_wsgi(environ: Mapping[str, Any], host: str) -> tuple[str, str, str]:
    target = environ.get("RAW_URI") or environ.get("REQUEST_URI")
    if not target:
        query = environ.get("QUERY_STRING", "")
        path = quote((environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")).encode("latin-1"))
        target = path + (f"?{query}" if query else "")
    scheme = environ["wsgi.url_scheme"]
    return environ["REQUEST_METHOD"], f"{scheme}://{host}", re.sub(r"^https?://[^/?]*", "", target)


def _parts_of(request: Any, host: str) -> tuple[str, str, str] | None:
    """Method, origin and target. A framework's request has the scope or the environ that it was made of."""
    scope, environ = getattr(request, "scope", request), getattr(request, "environ", request)
    if isinstance(environ, Mapping) and "wsgi.version" in environ:
        return _of_wsgi(environ, host)
    if isinstance(scope, Mapping) and "query_string" in scope:
        return _of_asgi(scope, host)
    described = isinstance(request, Mapping) and re.fullmatch(
        r"(https?://[^/?]+)(.*)", str(request.get("url"))
    )
    return (str(request["method"]), described[1], described[2]) if described else None


def describe_request(request: Any, origin: str | None, body: bytes | None) -> dict[str, Any] | None:
    """Returns None if the request has no signature."""
    named = request.get("headers") if isinstance(request, Mapping) and "url" in request else request
    pairs = list(pairs_of("agent", named))
    parts = _parts_of(request, "".join(values_of(pairs, "host")))
    if parts is None:
        hint = (
            "request is an ASGI scope, a WSGI environ, a request made of one, or has method, url and headers"
        )
        raise ConsentError("agent", "invalid-request", hint=hint)
    headers = _signed_headers(pairs)
    if not any(name in headers for name in _SIGNATURE):
        return None
    method, named_origin, target = parts
    url = (named_origin if origin is None else origin.rstrip("/")) + target
    text = None if body is None else base64.b64encode(body).decode()
    return {"method": method, "url": url, "headers": headers, "body": text}


_REFUSED = b'{"error":"agent-refused"}'
_HEADERS = [("content-type", "application/json"), ("content-length", str(len(_REFUSED)))]
_Allows = Callable[[AgentAnswer], bool]


class _Asked(Protocol):
    def agent(self, request: object, *, origin: str | None = None) -> AgentAnswer: ...


class _AsyncAsked(Protocol):
    async def agent(self, request: object, *, origin: str | None = None) -> AgentAnswer: ...


def agent_wsgi(
    app: Callable[..., Iterable[bytes]],
    client: _Asked,
    *,
    allows: _Allows = lambda _: True,
    origin: str | None = None,
) -> Callable[..., Iterable[bytes]]:
    """Hands the answer on as `environ["gpd.agent"]`; 403 where `allows` says no, which is not told why."""

    def middleware(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
        environ["gpd.agent"] = answer = client.agent(environ, origin=origin)
        if allows(answer):
            return app(environ, start_response)
        start_response("403 Forbidden", _HEADERS)
        return [_REFUSED]

    return middleware


class AgentMiddleware:
    """For ASGI: hands the answer on as `scope["gpd.agent"]`; 403 where `allows` says no."""

    def __init__(
        self,
        app: Callable[..., Awaitable[None]],
        client: _AsyncAsked,
        *,
        allows: _Allows = lambda _: True,
        origin: str | None = None,
    ) -> None:
        self._app, self._client, self._allows, self._origin = app, client, allows, origin

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope["gpd.agent"] = answer = await self._client.agent(scope, origin=self._origin)
            if not self._allows(answer):
                headers = [(name.encode(), value.encode()) for name, value in _HEADERS]
                await send({"type": "http.response.start", "status": 403, "headers": headers})
                await send({"type": "http.response.body", "body": _REFUSED})
                return
        await self._app(scope, receive, send)
