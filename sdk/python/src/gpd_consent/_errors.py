"""One error type, twelve kinds: the same strings in every language (SPEC.md section 5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from ._wire import ALWAYS_RAISED, KIND_OF_STATUS, Detail, ErrorKind, KnownCode


class ConsentError(Exception):
    """The error contains neither the key nor a principal id, and no text of a server."""

    kind: ErrorKind
    code: KnownCode | str
    """The server's error code, `closed`, the reason why a proof fails, or else the kind."""
    status: int | None
    request_id: str | None
    """Identifies the request in the server's log."""
    retry_after_seconds: int | None
    detail: Detail | None
    """Why there is no answer, or none of gpd; None if the kind says it all."""

    def __new__(cls, _method: str, kind: ErrorKind, **_facts: Any) -> Self:
        """Makes an error of the class of its kind."""
        chosen: Any = _CLASSES[kind] if cls is ConsentError else cls
        made: Self = chosen.__new__(chosen, _method, kind) if chosen is not cls else super().__new__(cls)
        return made

    def __init__(
        self,
        method: str,
        kind: ErrorKind,
        *,
        code: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
        retry_after_seconds: int | None = None,
        detail: Detail | None = None,
        cause: Exception | None = None,
        hint: str | None = None,
    ) -> None:
        """`cause` must be free of secrets: the failure of the system, never an exception of httpx."""
        self.kind = kind
        self.code = kind if code is None else code
        self.status = status
        self.request_id = request_id
        self.retry_after_seconds = retry_after_seconds
        self.detail = detail
        self._method = method
        self._hint = hint
        parts = [kind if self.code == kind else f"{kind} ({self.code})"]
        if status is not None:
            parts.append(f"status {status}")
        if detail is not None:
            parts.append(detail)
        # Not by the constructor of Exception: OSError, a base of two kinds, would drop it.
        self.args = (f"{method}: {', '.join(parts)}" + ("" if hint is None else f": {hint}"),)
        if cause is not None:
            self.__cause__ = cause

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[Callable[..., ConsentError], tuple[object, ...]]:
        facts = {
            "code": self.code,
            "status": self.status,
            "request_id": self.request_id,
            "retry_after_seconds": self.retry_after_seconds,
            "detail": self.detail,
            "hint": self._hint,
        }
        return _rebuild, (self._method, self.kind, facts)


def _rebuild(method: str, kind: ErrorKind, facts: dict[str, Any]) -> ConsentError:
    """Supports pickle and copy, because an error may be sent to another process."""
    return ConsentError(method, kind, **facts)


class ConfigError(ConsentError): ...


class InvalidRequestError(ConsentError): ...


class UnauthenticatedError(ConsentError): ...


class PermissionDeniedError(ConsentError): ...


class NotFoundError(ConsentError): ...


class ConflictError(ConsentError): ...


class RateLimitedError(ConsentError): ...


class ServerError(ConsentError): ...


class NetworkError(ConsentError, ConnectionError): ...


class CallTimeoutError(ConsentError, TimeoutError): ...


class ResponseError(ConsentError): ...


class ProofError(ConsentError): ...


_CLASSES: dict[ErrorKind, type[ConsentError]] = {
    "config": ConfigError,
    "invalid-request": InvalidRequestError,
    "unauthenticated": UnauthenticatedError,
    "permission-denied": PermissionDeniedError,
    "not-found": NotFoundError,
    "conflict": ConflictError,
    "rate-limited": RateLimitedError,
    "server": ServerError,
    "network": NetworkError,
    "timeout": CallTimeoutError,
    "response": ResponseError,
    "proof": ProofError,
}


def kind_of_status(status: int) -> ErrorKind:
    """Other 4xx mean an invalid request; a status that is neither 4xx nor 5xx means a malformed response."""
    named = KIND_OF_STATUS.get(status)
    if named is not None:
        return named
    if status >= 500:
        return "server"
    return "invalid-request" if status >= 400 else "response"


def is_undecided(error: ConsentError) -> bool:
    """True if a check may become a denial. Errors that the caller has to fix are raised instead."""
    if error.status is None:
        return error.kind not in ("config", "invalid-request")
    return error.status not in ALWAYS_RAISED and not 300 <= error.status < 400
