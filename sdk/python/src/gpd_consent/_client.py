"""The clients."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Self, TypedDict, Unpack

import httpx

from . import _network
from ._async_methods import AsyncConsent
from ._async_transport import AsyncTransport
from ._errors import ConsentError
from ._methods import Consent
from ._options import OnUnavailable, Settings, read_environment, read_settings
from ._transport import Transport


class _Shared(TypedDict, total=False):
    timeout: float
    """Total time of a reading call with its retries; by default 2 seconds."""
    write_timeout: float
    """Total time of a writing call; by default 10 seconds."""
    retries: int
    """Attempts after the first; by default 2."""
    on_unavailable: OnUnavailable
    cookie_domain: str | None
    clock: Callable[[], float]
    ssl_context: ssl.SSLContext | None
    on_error: Callable[[ConsentError], object] | None
    """Called with the error of each call that failed, also if it became a denial: for your log."""


class ClientOptions(_Shared, total=False):
    transport: httpx.BaseTransport | None


class AsyncClientOptions(_Shared, total=False):
    transport: httpx.AsyncBaseTransport | None


def _settings(url: str | Sequence[str], key: str, options: _Shared) -> Settings:
    return read_settings(
        url,
        key,
        timeout=options.get("timeout", 2.0),
        write_timeout=options.get("write_timeout", 10.0),
        retries=options.get("retries", 2),
        on_unavailable=options.get("on_unavailable", "deny"),
        cookie_domain=options.get("cookie_domain"),
        on_error=options.get("on_error"),
    )


def _refuse_unknown(options: Mapping[str, object], known: type) -> None:
    unknown = options.keys() - known.__annotations__.keys() - _Shared.__annotations__.keys()
    if unknown:
        raise TypeError(f"unknown option: {', '.join(sorted(unknown))}")


class ConsentClient(Consent):
    """A client of gpd's consent API. Create one per process and share it between threads."""

    def __init__(self, url: str | Sequence[str], key: str, **options: Unpack[ClientOptions]) -> None:
        """Several addresses are tried in their order."""
        _refuse_unknown(options, ClientOptions)
        settings = _settings(url, key, options)
        transport = options.get("transport")
        http = transport or _network.blocking(settings.bases, options.get("ssl_context"))
        sender = Transport(settings, http, owned=transport is None)
        super().__init__(sender, settings, options.get("clock", time.time))

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, **options: Unpack[ClientOptions]) -> Self:
        """Reads GPD_CONSENT_URL and GPD_CONSENT_KEY; `options` are those of the constructor."""
        url, key = read_environment(os.environ if environ is None else environ)
        return cls(url, key, **options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._settings.bases!r})"


class AsyncConsentClient(AsyncConsent):
    """A client of gpd's consent API for asyncio. Create one per event loop and share it."""

    def __init__(self, url: str | Sequence[str], key: str, **options: Unpack[AsyncClientOptions]) -> None:
        """Several addresses are tried in their order."""
        _refuse_unknown(options, AsyncClientOptions)
        settings = _settings(url, key, options)
        transport = options.get("transport")
        http = transport or _network.asynchronous(settings.bases, options.get("ssl_context"))
        sender = AsyncTransport(settings, http, owned=transport is None)
        super().__init__(sender, settings, options.get("clock", time.time))

    @classmethod
    def from_env(
        cls, environ: Mapping[str, str] | None = None, **options: Unpack[AsyncClientOptions]
    ) -> Self:
        """Reads GPD_CONSENT_URL and GPD_CONSENT_KEY; `options` are those of the constructor."""
        url, key = read_environment(os.environ if environ is None else environ)
        return cls(url, key, **options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._settings.bases!r})"
