"""The calls of a fake about visitors. Each is a function, which the fake calls where a client asks gpd."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ._errors import ConsentError
from ._fake_log import FakeLog
from ._fake_signer import FakeSigner
from ._shapes import RefreshedState, StateKeySet
from ._state_cookie import STATE_COOKIE, SignedState, parse_state
from ._types import Decision

Decide = Callable[[str, str, str], Decision]
"""Decides for a method, a principal and a purpose."""


class FakeVisitorCalls:
    def __init__(
        self, log: FakeLog, decide: Decide, is_unavailable: Callable[[], bool], clock: Callable[[], float]
    ) -> None:
        self._log = log
        self._decide = decide
        self._is_unavailable = is_unavailable
        self._clock = clock
        self._signer = FakeSigner()

    def cookie_for(self, principal_id: str) -> str:
        purposes, seq = self._log.visitor_state(principal_id, gpc=False)
        return f"{STATE_COOKIE}={self._signer.sign(principal_id, purposes, seq, self._clock())}"

    def _reach(self, method: str) -> None:
        if self._is_unavailable():
            raise ConsentError(method, "network")

    def fetch_keys(self, method: str) -> Callable[[], StateKeySet]:
        def fetch() -> StateKeySet:
            self._reach(method)
            return self._signer.keys()

        return fetch

    def refresh(self, method: str, state: SignedState, gpc: bool) -> Callable[[], RefreshedState]:
        def refresh() -> RefreshedState:
            self._reach(method)
            principal_id = self._signer.principal_of(state.subject) or ""
            purposes, seq = self._log.visitor_state(principal_id, gpc=gpc)
            signed = parse_state(self._signer.sign(principal_id, purposes, seq, self._clock()))
            # gpd does not know a person who has never chosen.
            if seq == 0 or signed is None:
                raise ConsentError(method, "not-found", code="no-data", status=404)
            return RefreshedState(signed, purposes, seq)

        return refresh

    def check_purposes(
        self, method: str, principal_id: str, purposes: Sequence[str]
    ) -> Callable[[], list[Decision]]:
        return lambda: [self._decide(method, principal_id, purpose) for purpose in purposes]
