"""Signs the states of a fake with a key that only this fake has."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ._state_cookie import encode_part
from ._state_keys import require_cryptography

_TENANT = "fake"
_KEY_ID = "fake-key"


def _encode(value: dict[str, Any]) -> str:
    return encode_part(json.dumps(value).encode("utf-8"))


class FakeSigner:
    def __init__(self) -> None:
        self._key: Any = None
        self._principals: dict[str, str] = {}
        """Principals by their reference."""

    def principal_of(self, subject: str) -> str | None:
        return self._principals.get(subject)

    def jwks(self) -> dict[str, Any]:
        numbers = self._private_key().public_key().public_numbers()
        x, y = (encode_part(part.to_bytes(32, "big")) for part in (numbers.x, numbers.y))
        key = {"kid": _KEY_ID, "kty": "EC", "crv": "P-256", "x": x, "y": y, "alg": "ES256", "use": "sig"}
        return {"tenant": _TENANT, "keys": [key]}

    def sign(self, principal_id: str, purposes: tuple[str, ...], seq: int, now: float) -> str:
        from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
        from cryptography.hazmat.primitives.hashes import SHA256

        subject = hashlib.sha256(f"fake subject {principal_id}".encode()).hexdigest()
        self._principals[subject] = principal_id
        claims = {
            "iss": "https://fake.example",
            "kid": _TENANT,
            "sub": subject,
            "iat": int(now),
            "exp": int(now) + 300,
            "p": purposes,
            "seq": seq,
        }
        message = f"{_encode({'alg': 'ES256', 'kid': _KEY_ID, 'typ': 'JWT'})}.{_encode(claims)}"
        der = self._private_key().sign(message.encode("ascii"), ECDSA(SHA256()))
        halves = b"".join(half.to_bytes(32, "big") for half in decode_dss_signature(der))
        return f"{message}.{encode_part(halves)}"

    def _private_key(self) -> Any:
        require_cryptography("FakeConsent")
        from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

        if self._key is None:
            self._key = generate_private_key(SECP256R1())
        return self._key
