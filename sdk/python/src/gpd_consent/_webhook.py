"""Verifies deliveries of gpd, which are signed as in Standard Webhooks (SPEC.md section 7)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any

from ._base64 import decode_base64
from ._errors import ConsentError
from ._json import is_integer, is_object, parse_json
from ._types import WebhookEvent

_METHOD = "verify_webhook"
_PREFIX = "whsec_"
_SECONDS = re.compile(r"[0-9]{1,15}")


WebhookHeaders = Mapping[str, str] | Iterable[tuple[str, str]]
"""Headers of a request of any framework, or pairs."""


def _refusal(code: str) -> ConsentError:
    return ConsentError(_METHOD, "proof", code=code)


def _read_secret(secret: object) -> bytes | None:
    if not isinstance(secret, str) or not secret.startswith(_PREFIX):
        return None
    key = decode_base64(secret.removeprefix(_PREFIX))
    return key if key is not None and 24 <= len(key) <= 64 else None


def _misconfigured(hint: str) -> ConsentError:
    return ConsentError(_METHOD, "config", hint=hint)


def _read_secrets(secrets: object) -> list[bytes]:
    # An unset environment variable is None, whatever its type says.
    items = list(secrets) if isinstance(secrets, Iterable) and not isinstance(secrets, str) else [secrets]
    keys = [key for key in map(_read_secret, items) if key is not None]
    if not keys or len(keys) != len(items):
        raise _misconfigured("secrets are whsec_ and base64 of 24 to 64 bytes")
    return keys


def _check_window(tolerance_seconds: float, now: float) -> None:
    """Refuses NaN: every comparison with it is false, so an age check could pass."""
    if not math.isfinite(tolerance_seconds) or tolerance_seconds < 0:
        raise _misconfigured("tolerance_seconds is a number of seconds, 0 or more")
    if not math.isfinite(now):
        raise _misconfigured("now is a number of seconds since the epoch")


def _read_header(headers: WebhookHeaders, name: str) -> str:
    """The header must occur exactly once and must not be empty."""
    # httpx joins repeated headers in items().
    items = getattr(headers, "multi_items", None) or getattr(headers, "items", None)
    pairs: Iterable[Any] = headers if items is None else items()
    values = [value for key, value in pairs if isinstance(key, str) and key.lower() == name]
    if len(values) != 1 or not isinstance(values[0], str) or values[0] == "":
        raise _refusal("missing-header")
    return values[0]


def _is_signed(keys: list[bytes], signed: bytes, signatures: str) -> bool:
    macs = [hmac.digest(key, signed, hashlib.sha256) for key in keys]
    received = [decode_base64(item[3:]) for item in signatures.split(" ") if item.startswith("v1,")]
    return any(mac is not None and hmac.compare_digest(mac, valid) for mac in received for valid in macs)


def _read_event(name: str, body: bytes) -> WebhookEvent | None:
    value = parse_json(body)
    if not is_object(value):
        return None
    kind, timestamp, seq, data = (value.get(field) for field in ("type", "timestamp", "seq", "data"))
    if not isinstance(kind, str) or not isinstance(timestamp, str):
        return None
    if not is_integer(seq) or not is_object(data):
        return None
    return WebhookEvent(name, kind, timestamp, seq, data)


def verify_webhook(
    body: bytes | str,
    headers: WebhookHeaders,
    *,
    secrets: str | Iterable[str],
    tolerance_seconds: float = 300,
    now: float | None = None,
) -> WebhookEvent:
    """`body` is the raw bytes of the request, unparsed. `secrets` is the `whsec_…` that `gpd webhooks add`
    printed, or several while a secret is replaced.

    Raises a ConsentError of kind `proof`, whose code names the failed check, or `config` for a malformed
    secret, tolerance or time, or a parsed body.
    """
    keys = _read_secrets(secrets)
    moment = time.time() if now is None else now
    _check_window(tolerance_seconds, moment)
    name = _read_header(headers, "webhook-id")
    timestamp = _read_header(headers, "webhook-timestamp")
    signatures = _read_header(headers, "webhook-signature")
    if not _SECONDS.fullmatch(timestamp):
        raise _refusal("malformed-header")
    # A type says nothing to a framework that parsed the body.
    if not isinstance(body, (str, bytes, bytearray, memoryview)):
        raise _misconfigured("body is the raw bytes of the request, not what a parser made of them")
    raw = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else bytes(body)
    signed = f"{name}.{timestamp}.".encode("utf-8", "surrogatepass") + raw
    if not _is_signed(keys, signed, signatures):
        raise _refusal("bad-signature")
    if abs(int(timestamp) - moment) > tolerance_seconds:
        raise _refusal("stale")
    event = _read_event(name, raw)
    if event is None:
        raise _refusal("malformed-event")
    return event


def sign_webhook(
    body: bytes | str, *, secret: str, id: str = "evt_1", now: float | None = None
) -> dict[str, str]:
    """Signs a delivery as gpd does, for tests of a receiver."""
    raw = body.encode("utf-8") if isinstance(body, str) else bytes(body)
    timestamp = str(int(time.time() if now is None else now))
    signed = f"{id}.{timestamp}.".encode() + raw
    mac = hmac.new(_read_secrets(secret)[0], signed, hashlib.sha256).digest()
    signature = f"v1,{base64.b64encode(mac).decode('ascii')}"
    return {"webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature}
