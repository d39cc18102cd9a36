"""Reads the two headers that matter from the requests of WSGI, ASGI and frameworks on top of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ._errors import ConsentError

_Pairs = Iterable[tuple[Any, Any]]


def _text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def pairs_of(method: str, request: Any) -> _Pairs:
    # Before the mappings: a request of Starlette is the mapping of its scope too.
    headers = getattr(request, "headers", None)
    if headers is not None:
        return _items(method, headers)
    if isinstance(request, Mapping) and "wsgi.version" in request:
        return (
            (name.removeprefix("HTTP_").replace("_", "-"), value)
            for name, value in request.items()
            if name.startswith("HTTP_")
        )
    if isinstance(request, Mapping) and isinstance(request.get("headers"), (list, tuple)):
        pairs: _Pairs = request["headers"]
        return pairs
    return _items(method, request)


def _items(method: str, headers: Any) -> _Pairs:
    items = getattr(headers, "items", None)
    if items is None:
        hint = "request is a WSGI environ, an ASGI scope, an object with headers, or headers"
        raise ConsentError(method, "invalid-request", hint=hint)
    pairs: _Pairs = items()
    return pairs


def values_of(pairs: _Pairs, name: str) -> Iterator[str]:
    for key, value in pairs:
        if _text(key).lower() == name:
            yield from map(_text, value if isinstance(value, (list, tuple)) else [value])


def read_request(method: str, request: object) -> tuple[str, bool]:
    """Returns the text of Cookie, and whether Sec-GPC says 1."""
    pairs = list(pairs_of(method, request))
    signals = ",".join(values_of(pairs, "sec-gpc")).split(",")
    return "; ".join(values_of(pairs, "cookie")), any(signal.strip() == "1" for signal in signals)
