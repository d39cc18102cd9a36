"""The options of a client (SPEC.md section 1). Messages name the option, never its value."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import httpx

from ._errors import ConsentError

OnUnavailable = Literal["deny", "error"]

_MIN_SECONDS = 0.001
_MAX_SECONDS = 600.0
_MAX_CALL_SECONDS = 60.0
_MAX_PORT = 65_535
_MAX_RETRIES = 10
_COOKIE_DOMAIN = re.compile(r"\.?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")
_VISIBLE_ASCII = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class Settings:
    base: str
    """Without a trailing slash."""
    key: str = field(repr=False)
    timeout: float
    write_timeout: float
    retries: int
    on_unavailable: OnUnavailable
    cookie_domain: str | None = None


def _refusal(hint: str) -> ConsentError:
    return ConsentError("ConsentClient", "config", hint=hint)


def _parse_base(url: object) -> str | None:
    if not isinstance(url, str) or "?" in url or "#" in url or url != url.strip():
        return None
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        return None
    if parsed.scheme not in ("http", "https") or not parsed.raw_host or parsed.userinfo:
        return None
    if parsed.port is not None and not 0 < parsed.port <= _MAX_PORT:
        return None
    return str(parsed).rstrip("/")


def check_seconds(name: str, value: object, maximum: float = _MAX_SECONDS) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if isinstance(value, (int, float)) and is_number and _MIN_SECONDS <= value <= maximum:
        return float(value)
    raise _refusal(f"{name} is a number of seconds from {_MIN_SECONDS} to {maximum:.0f}")


def check_call_seconds(value: object) -> float:
    """Checks the timeout of a single call."""
    return check_seconds("timeout", value, _MAX_CALL_SECONDS)


def check_cookie_domain(domain: object) -> str | None:
    if domain is None or (isinstance(domain, str) and _COOKIE_DOMAIN.fullmatch(domain)):
        return domain
    raise _refusal("cookie_domain is a domain such as .shop.example")


def read_settings(
    url: object,
    key: object,
    *,
    timeout: object,
    write_timeout: object,
    retries: object,
    on_unavailable: object,
    cookie_domain: object = None,
) -> Settings:
    if not isinstance(key, str) or not _VISIBLE_ASCII.fullmatch(key):
        raise _refusal("key must be an API key of visible ASCII characters (GPD_CONSENT_KEY)")
    base = _parse_base(url)
    if base is None:
        raise _refusal("url is an http or https address without user info, query and fragment")
    if type(retries) is not int or not 0 <= retries <= _MAX_RETRIES:
        raise _refusal(f"retries is an int from 0 to {_MAX_RETRIES}")
    if on_unavailable != "deny" and on_unavailable != "error":
        raise _refusal("on_unavailable is deny or error")
    return Settings(
        base=base,
        key=key,
        timeout=check_seconds("timeout", timeout),
        write_timeout=check_seconds("write_timeout", write_timeout),
        retries=retries,
        cookie_domain=check_cookie_domain(cookie_domain),
        on_unavailable="deny" if on_unavailable == "deny" else "error",
    )


def read_environment(environ: Mapping[str, str]) -> tuple[str, str]:
    """Returns address and key."""

    def read(name: str) -> str:
        value = environ.get(name)
        if not value:
            raise _refusal(f"{name} is not set")
        return value

    return read("GPD_CONSENT_URL"), read("GPD_CONSENT_KEY")
