"""Answers a server that renders (SPEC.md section 10).

Each question is a generator, which yields a call and is sent its value or its ConsentError, so that the
blocking client, the asynchronous one and the fake cannot differ.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol, TypeVar

from . import _checks as checks_of
from ._errors import ConsentError, is_undecided
from ._options import OnUnavailable
from ._request import read_request
from ._shapes import RefreshedState
from ._state_cookie import SignedState, parse_state, read_cookie, set_cookie_of
from ._state_keys import StateKeys, require_cryptography
from ._types import CurrentState, Decision, Permissions, VisitorState

T = TypeVar("T")
Question = Generator[Any, Any, T]

NOBODY = CurrentState((), None, None, None)


class VisitorCalls(Protocol):
    """Makes the calls that a question yields."""

    def fetch_keys(self, method: str) -> Any: ...
    def refresh(self, method: str, state: SignedState, gpc: bool) -> Any: ...
    def check_purposes(self, method: str, principal_id: str, purposes: Sequence[str]) -> Any: ...


class Visitors:
    def __init__(
        self,
        calls: VisitorCalls,
        on_unavailable: OnUnavailable,
        cookie_domain: str | None,
        clock: Callable[[], float],
    ) -> None:
        self._calls = calls
        self._on_unavailable = on_unavailable
        self._cookie_domain = cookie_domain
        self._clock = clock
        self._keys = StateKeys()

    def read_state(self, header: str | None) -> Question[VisitorState | None]:
        method = "read_state"
        require_cryptography(method)
        try:
            state = yield from self._genuine_state(method, header)
        except ConsentError as error:
            if not is_undecided(error):
                raise
            state = None
        is_current = state is not None and state.is_fresh(self._clock())
        return VisitorState(state.purposes, state.seq, state.at) if state and is_current else None

    def current_state(self, header: str | None) -> Question[CurrentState]:
        require_cryptography("current_state")
        return (yield from self._current_state("current_state", header))

    def may(
        self, request: object, purposes: Sequence[str], principal_id: str | None
    ) -> Question[Permissions]:
        method = "may"
        checks_of.check_purposes(method, purposes, principal_id)
        cookie, gpc = read_request(method, request)
        require_cryptography(method)
        # A check of an account cannot carry this request's signal: under GPC the cookie must allow too.
        if principal_id is not None and not gpc:
            allowed = yield from self._allowed_for(method, principal_id, purposes)
            return Permissions(allowed, None)
        ask = self._state_under_gpc if gpc else self._current_state
        visitor = yield from ask(method, cookie)
        allowed = tuple(purpose for purpose in purposes if purpose in visitor.purposes)
        if principal_id is not None:
            allowed = yield from self._allowed_for(method, principal_id, allowed)
        return Permissions(allowed, visitor.set_cookie)

    def _genuine_state(self, method: str, header: str | None) -> Question[SignedState | None]:
        """A state that gpd signed for this tenant, of any age. Raises when that could not be found out."""
        state, now = parse_state(read_cookie(header)), self._clock()
        if state is None or state.is_early(now):
            return None
        is_genuine = yield from self._keys.verify(state, now, self._calls.fetch_keys(method))
        return state if is_genuine else None

    def _current_state(self, method: str, header: str | None) -> Question[CurrentState]:
        try:
            state = yield from self._genuine_state(method, header)
            if state is None:
                return NOBODY
            if state.is_fresh(self._clock()):
                return CurrentState(state.purposes, state.seq, state.at, None)
            return (yield from self._refresh(method, state, gpc=False))
        except ConsentError as error:
            return self._undecided(error)

    def _state_under_gpc(self, method: str, header: str | None) -> Question[CurrentState]:
        """The purposes that gpd allows under this signal. The cookie stays as it is: the signal is that of
        one request."""
        try:
            state = yield from self._genuine_state(method, header)
            if state is None:
                return NOBODY
            current = yield from self._refresh(method, state, gpc=True)
        except ConsentError as error:
            return self._undecided(error)
        if current.seq is None:
            return current
        return CurrentState(current.purposes, current.seq, current.at, None)

    def _refresh(self, method: str, state: SignedState, *, gpc: bool) -> Question[CurrentState]:
        answer: RefreshedState | ConsentError = yield self._calls.refresh(method, state, gpc)
        if not isinstance(answer, ConsentError):
            set_cookie = set_cookie_of(answer.signed.text, self._cookie_domain)
            return CurrentState(answer.purposes, answer.seq, answer.signed.at, set_cookie)
        if answer.kind == "not-found":
            return CurrentState((), None, None, set_cookie_of(None, self._cookie_domain))
        raise answer

    def _undecided(self, error: ConsentError) -> CurrentState:
        """The only place where an error becomes a denial."""
        if is_undecided(error) and self._on_unavailable == "deny":
            return NOBODY
        raise error

    def _allowed_for(
        self, method: str, principal_id: str, purposes: Sequence[str]
    ) -> Question[tuple[str, ...]]:
        if len(purposes) == 0:
            return ()
        answer: list[Decision] | ConsentError = yield self._calls.check_purposes(
            method, principal_id, purposes
        )
        if isinstance(answer, ConsentError):
            raise answer
        return tuple(purpose for purpose, one in zip(purposes, answer, strict=True) if one.allowed)
