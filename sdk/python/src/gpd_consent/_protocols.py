"""The protocols that clients and fakes share. Let your own code depend on one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ._types import (
    ConsentState,
    CurrentState,
    Decision,
    Health,
    History,
    Permissions,
    Receipt,
    ReportedOutcome,
    Session,
    Verdict,
    VisitorState,
    WriteResult,
)


class ConsentSessions(Protocol):
    def create(self, principal_id: str, *, timeout: float | None = None) -> Session: ...


class Consent(Protocol):
    @property
    def sessions(self) -> ConsentSessions: ...
    def is_allowed(
        self, principal_id: str, purpose: str, *, min_seq: int | None = None, timeout: float | None = None
    ) -> bool: ...
    def can_process(
        self, principal_id: str, purpose: str, *, min_seq: int | None = None, timeout: float | None = None
    ) -> Decision: ...
    def can_process_many(
        self, checks: Sequence[tuple[str, str]], *, timeout: float | None = None
    ) -> list[Decision]: ...
    def grant(
        self,
        principal_id: str,
        purposes: Sequence[str],
        *,
        policy_version: int | None = None,
        gpc: bool | None = None,
        over_gpc: bool | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> WriteResult: ...
    def deny(
        self,
        principal_id: str,
        purposes: Sequence[str],
        *,
        policy_version: int | None = None,
        gpc: bool | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> WriteResult: ...
    def withdraw(
        self,
        principal_id: str,
        purposes: Sequence[str],
        *,
        policy_version: int | None = None,
        gpc: bool | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> WriteResult: ...
    def state(self, principal_id: str, *, timeout: float | None = None) -> ConsentState: ...
    def history(
        self,
        principal_id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> History: ...
    def receipt(self, seq: int, *, timeout: float | None = None) -> Receipt: ...
    def proof(self, seq: int, *, timeout: float | None = None) -> str: ...
    def decision(self, request_id: str, *, timeout: float | None = None) -> Verdict: ...
    def report_outcome(
        self, request_id: str, outcome: str, *, at: str | None = None, timeout: float | None = None
    ) -> ReportedOutcome: ...
    def read_state(
        self, cookie_header: str | None, *, timeout: float | None = None
    ) -> VisitorState | None: ...
    def current_state(self, cookie_header: str | None, *, timeout: float | None = None) -> CurrentState: ...
    def may(
        self,
        request: object,
        purposes: Sequence[str],
        *,
        principal_id: str | None = None,
        timeout: float | None = None,
    ) -> Permissions: ...
    def ping(self, *, timeout: float | None = None) -> Health: ...
    def close(self) -> None: ...


class AsyncConsentSessions(Protocol):
    async def create(self, principal_id: str, *, timeout: float | None = None) -> Session: ...


class AsyncConsent(Protocol):
    @property
    def sessions(self) -> AsyncConsentSessions: ...
    async def is_allowed(
        self, principal_id: str, purpose: str, *, min_seq: int | None = None, timeout: float | None = None
    ) -> bool: ...
    async def can_process(
        self, principal_id: str, purpose: str, *, min_seq: int | None = None, timeout: float | None = None
    ) -> Decision: ...
    async def can_process_many(
        self, checks: Sequence[tuple[str, str]], *, timeout: float | None = None
    ) -> list[Decision]: ...
    async def grant(
        self,
        principal_id: str,
        purposes: Sequence[str],
        *,
        policy_version: int | None = None,
        gpc: bool | None = None,
        over_gpc: bool | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> WriteResult: ...
    async def deny(
        self,
        principal_id: str,
        purposes: Sequence[str],
        *,
        policy_version: int | None = None,
        gpc: bool | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> WriteResult: ...
    async def withdraw(
        self,
        principal_id: str,
        purposes: Sequence[str],
        *,
        policy_version: int | None = None,
        gpc: bool | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> WriteResult: ...
    async def state(self, principal_id: str, *, timeout: float | None = None) -> ConsentState: ...
    async def history(
        self,
        principal_id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> History: ...
    async def receipt(self, seq: int, *, timeout: float | None = None) -> Receipt: ...
    async def proof(self, seq: int, *, timeout: float | None = None) -> str: ...
    async def decision(self, request_id: str, *, timeout: float | None = None) -> Verdict: ...
    async def report_outcome(
        self, request_id: str, outcome: str, *, at: str | None = None, timeout: float | None = None
    ) -> ReportedOutcome: ...
    async def read_state(
        self, cookie_header: str | None, *, timeout: float | None = None
    ) -> VisitorState | None: ...
    async def current_state(
        self, cookie_header: str | None, *, timeout: float | None = None
    ) -> CurrentState: ...
    async def may(
        self,
        request: object,
        purposes: Sequence[str],
        *,
        principal_id: str | None = None,
        timeout: float | None = None,
    ) -> Permissions: ...
    async def ping(self, *, timeout: float | None = None) -> Health: ...
    async def close(self) -> None: ...
