"""The cookie `gpd_consent`: a compact JWS of gpd about a visitor's choices (SPEC.md section 10).

Signatures are verified in `_state_keys`.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeGuard

from ._json import is_integer, is_object, is_seq, parse_json

STATE_COOKIE = "gpd_consent"
_MAX_STATE_LENGTH = 4096
_MAX_AGE = 300
_MAX_SKEW = 60
"""The tolerated seconds between the clocks of gpd and this machine."""
_COOKIE_SECONDS = 34_560_000
"""400 days, as the banner has it: the cookie of a visitor who comes back after a month is renewed."""
_MAX_SECONDS = 253_402_300_799
"""9999-12-31T23:59:59Z, after which not every language can write the time."""
_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""Both halves of a signature are 1 to n-1. Some libraries once accepted zero."""


@dataclass(frozen=True, slots=True, repr=False)
class SignedState:
    text: str
    """The whole JWS."""
    key_id: str
    message: bytes
    signature: tuple[int, int]
    tenant: str
    subject: str
    """gpd's reference of the person, not the principal id."""
    issued_at: int
    expires_at: int
    purposes: tuple[str, ...]
    seq: int

    @property
    def at(self) -> str:
        return datetime.fromtimestamp(self.issued_at, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")

    def is_early(self, now: float) -> bool:
        """True for a state that cannot be gpd's, because it was signed in the future."""
        return self.issued_at > now + _MAX_SKEW

    def is_fresh(self, now: float) -> bool:
        """A state counts for five minutes, whatever it says itself."""
        return now < min(self.expires_at, self.issued_at + _MAX_AGE)


def read_cookie(header: object) -> str | None:
    """None unless there is exactly one such cookie: nobody can say which of two is the newer one."""
    if not isinstance(header, str):
        return None
    pairs = [pair.strip() for pair in header.split(";")]
    prefix = f"{STATE_COOKIE}="
    values = [pair.removeprefix(prefix) for pair in pairs if pair.startswith(prefix)]
    return values[0] if len(values) == 1 else None


def encode_part(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def decode_part(part: object) -> bytes | None:
    """Decodes only unpadded canonical base64url."""
    if not isinstance(part, str):
        return None
    try:
        data = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except (ValueError, binascii.Error):
        return None
    return data if encode_part(data) == part else None


def _is_seconds(value: object) -> TypeGuard[int]:
    return is_integer(value) and 0 <= value <= _MAX_SECONDS


def _parse_signature(data: bytes) -> tuple[int, int] | None:
    halves = (int.from_bytes(data[:32], "big"), int.from_bytes(data[32:], "big"))
    is_valid = len(data) == 64 and all(0 < half < _P256_ORDER for half in halves)
    return halves if is_valid else None


def parse_state(text: object) -> SignedState | None:
    """None for a malformed state or another algorithm. The signature is not verified yet."""
    if not isinstance(text, str) or len(text) > _MAX_STATE_LENGTH or text.count(".") != 2:
        return None
    head, payload, tail = text.split(".")
    header, claims = parse_json(decode_part(head)), parse_json(decode_part(payload))
    signature = _parse_signature(decode_part(tail) or b"")
    if not is_object(header) or not is_object(claims) or signature is None or "crit" in header:
        return None
    key_id = header.get("kid")
    if header.get("alg") != "ES256" or header.get("typ") != "JWT" or not isinstance(key_id, str):
        return None
    return _state_of(claims, text=text, key_id=key_id, signature=signature)


def _state_of(
    claims: dict[str, Any], *, text: str, key_id: str, signature: tuple[int, int]
) -> SignedState | None:
    tenant, subject, seq = claims.get("kid"), claims.get("sub"), claims.get("seq")
    issued_at, expires_at, purposes = claims.get("iat"), claims.get("exp"), claims.get("p")
    if not isinstance(tenant, str) or not isinstance(subject, str) or not is_seq(seq):
        return None
    if not _is_seconds(issued_at) or not _is_seconds(expires_at):
        return None
    if not isinstance(purposes, list) or not all(isinstance(purpose, str) for purpose in purposes):
        return None
    message = text.rpartition(".")[0].encode("ascii")
    return SignedState(
        text, key_id, message, signature, tenant, subject, issued_at, expires_at, tuple(purposes), seq
    )


def set_cookie_of(state: str | None, domain: str | None) -> str:
    """Readable by scripts, because the banner has to end it the moment that somebody refuses."""
    age = 0 if state is None else _COOKIE_SECONDS
    scope = "" if domain is None else f"; Domain={domain}"
    return f"{STATE_COOKIE}={state or ''}; Path=/; Max-Age={age}; SameSite=Lax; Secure{scope}"
