"""The keys that sign states (SPEC.md section 10). They are fetched for the first well-formed cookie."""

from __future__ import annotations

import copy
import importlib.util
import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._errors import ConsentError, is_undecided
from ._shapes import StateKeySet
from ._state_cookie import SignedState, decode_part

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

_TTL = 300
_REFETCH = 60
"""Anybody can send a cookie with an unknown key id, so this is the pause between two fetches."""
_RETRY = 5
"""The pause after a fetch that failed while no key is known."""


def require_cryptography(method: str) -> None:
    if importlib.util.find_spec("cryptography") is None:
        raise ConsentError(method, "config", code="no-cryptography", hint="pip install 'gpd-consent[proofs]'")


@dataclass(frozen=True, slots=True)
class _KnownKeys:
    tenant: str
    by_id: dict[str, EllipticCurvePublicKey]
    fetched_at: float


def _import_key(x: str, y: str) -> EllipticCurvePublicKey | None:
    # Imported here, because only states and proofs need this optional package.
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicNumbers

    first, second = decode_part(x) or b"", decode_part(y) or b""
    if len(first) != 32 or len(second) != 32:
        return None
    numbers = EllipticCurvePublicNumbers(
        int.from_bytes(first, "big"), int.from_bytes(second, "big"), SECP256R1()
    )
    try:
        # A point that is not on the curve is no key.
        return numbers.public_key()
    except ValueError:
        return None


def _verifies(key: EllipticCurvePublicKey, state: SignedState) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
    from cryptography.hazmat.primitives.hashes import SHA256

    try:
        key.verify(encode_dss_signature(*state.signature), state.message, ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True


def _has_passed(since: float, pause: float, now: float) -> bool:
    """True if that much time has passed. A clock that was set back does not stop it."""
    return now < since or now >= since + pause


class StateKeys:
    def __init__(self) -> None:
        self._known: _KnownKeys | None = None
        self._tried_at = -math.inf
        self._failure: ConsentError | None = None

    def verify(self, state: SignedState, now: float, fetch: Any) -> Generator[Any, Any, bool]:
        """`fetch` is yielded if the keys are needed. Raises if the key could not be fetched."""
        if self._is_due(state.key_id, now):
            yield from self._fetch(now, fetch)
        known = self._known
        key = None if known is None else known.by_id.get(state.key_id)
        if known is None or key is None:
            if self._failure is not None:
                # A copy, because each raise adds to the traceback of its exception.
                raise copy.copy(self._failure)
            return False
        return state.tenant == known.tenant and _verifies(key, state)

    def _is_due(self, key_id: str, now: float) -> bool:
        known = self._known
        if known is None:
            return _has_passed(self._tried_at, _RETRY, now)
        is_wanted = key_id not in known.by_id or _has_passed(known.fetched_at, _TTL, now)
        return is_wanted and _has_passed(self._tried_at, _REFETCH, now)

    def _fetch(self, now: float, fetch: Any) -> Generator[Any, Any, None]:
        """Known keys stay in use when a fetch fails."""
        if self._known is not None:
            # Set before the call, so that other requests go on with the known keys meanwhile.
            self._tried_at = now
        answer: StateKeySet | ConsentError = yield fetch
        if isinstance(answer, ConsentError):
            if not is_undecided(answer):
                raise answer
            self._failure = answer
        else:
            imported = {key_id: _import_key(x, y) for key_id, x, y in answer.keys}
            by_id = {key_id: key for key_id, key in imported.items() if key is not None}
            self._known, self._failure = _KnownKeys(answer.tenant, by_id, now), None
        self._tried_at = now
