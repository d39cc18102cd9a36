"""The options of a client (SPEC.md section 1). Messages name the option, never its value."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
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
    bases: tuple[str, ...]
    """Without trailing slashes; at least one."""
    key: str = field(repr=False)
    timeout: float
    write_timeout: float
    retries: int
    on_unavailable: OnUnavailable
    cookie_domain: str | None = None
    on_error: Callable[[ConsentError], object] | None = None


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


def _parse_bases(url: object) -> tuple[str, ...]:
    """Several addresses are tried in their order."""
    urls = url if isinstance(url, Sequence) and not isinstance(url, (str, bytes)) else [url]
    bases = [_parse_base(one) for one in urls]
    known = tuple(base for base in bases if base is not None)
    if not known or len(known) < len(bases):
        raise _refusal("url is an http or https address without user info, query and fragment")
    return known


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
    on_error: Callable[[ConsentError], object] | None = None,
) -> Settings:
    if not isinstance(key, str) or not _VISIBLE_ASCII.fullmatch(key):
        raise _refusal("key must be an API key of visible ASCII characters (GPD_CONSENT_KEY)")
    bases = _parse_bases(url)
    if type(retries) is not int or not 0 <= retries <= _MAX_RETRIES:
        raise _refusal(f"retries is an int from 0 to {_MAX_RETRIES}")
    if on_unavailable != "deny" and on_unavailable != "error":
        raise _refusal("on_unavailable is deny or error")
    return Settings(
        bases=bases,
        key=key,
        timeout=check_seconds("timeout", timeout),
        write_timeout=check_seconds("write_timeout", write_timeout),
        retries=retries,
        cookie_domain=check_cookie_domain(cookie_domain),
        on_unavailable="deny" if on_unavailable == "deny" else "error",
        on_error=on_error,
    )


def read_environment(environ: Mapping[str, str]) -> tuple[list[str], str]:
    """Returns addresses, which white space parts, and the key."""

    def read(name: str) -> str:
        value = environ.get(name)
        if not value:
            raise _refusal(f"{name} is not set")
        return value

    return read("GPD_CONSENT_URL").split(), read("GPD_CONSENT_KEY")
