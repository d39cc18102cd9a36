"""Creates the connections of a client, unless the caller passes some."""

from __future__ import annotations

import ssl

import httpx

from ._deadline import DeadlineTransport

_LIMITS = httpx.Limits(max_connections=100, max_keepalive_connections=100, keepalive_expiry=30.0)


def _context(base: str, context: ssl.SSLContext | None) -> ssl.SSLContext:
    if context is not None:
        return context
    # Loading the certificates takes longer than most calls; without them this context trusts no server.
    return (
        httpx.create_ssl_context() if base.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    )


def blocking(base: str, ssl_context: ssl.SSLContext | None) -> httpx.BaseTransport:
    return DeadlineTransport(_context(base, ssl_context), _LIMITS)


def asynchronous(base: str, ssl_context: ssl.SSLContext | None) -> httpx.AsyncBaseTransport:
    return httpx.AsyncHTTPTransport(verify=_context(base, ssl_context), limits=_LIMITS)
