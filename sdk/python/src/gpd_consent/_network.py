"""Creates the connections of a client, unless the caller passes some."""

from __future__ import annotations

import ssl

import httpx

from ._deadline import DeadlineTransport

_LIMITS = httpx.Limits(max_connections=100, max_keepalive_connections=100, keepalive_expiry=30.0)


def _context(bases: tuple[str, ...], context: ssl.SSLContext | None) -> ssl.SSLContext:
    if context is not None:
        return context
    # Loading the certificates takes longer than most calls; without them this context trusts no server.
    is_tls = any(base.startswith("https:") for base in bases)
    return httpx.create_ssl_context() if is_tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def blocking(bases: tuple[str, ...], ssl_context: ssl.SSLContext | None) -> httpx.BaseTransport:
    return DeadlineTransport(_context(bases, ssl_context), _LIMITS)


def asynchronous(bases: tuple[str, ...], ssl_context: ssl.SSLContext | None) -> httpx.AsyncBaseTransport:
    return httpx.AsyncHTTPTransport(verify=_context(bases, ssl_context), limits=_LIMITS)
