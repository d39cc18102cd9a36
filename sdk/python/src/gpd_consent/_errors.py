"""One error type, twelve kinds: the same strings in every language (SPEC.md section 5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

ErrorKind = Literal[
    "config",
    "invalid-request",
    "unauthenticated",
    "permission-denied",
    "not-found",
    "conflict",
    "rate-limited",
    "server",
    "network",
    "timeout",
    "response",
    "proof",
]


class ConsentError(Exception):
    """The error contains neither the key nor a principal id, and no text of a server."""

    kind: ErrorKind
    code: str
    """The server's error code, `closed`, the reason why a proof fails, or else the kind."""
    status: int | None
    request_id: str | None
    """Identifies the request in the server's log."""
    retry_after_seconds: int | None

    def __init__(
        self,
        method: str,
        kind: ErrorKind,
        *,
        code: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
        retry_after_seconds: int | None = None,
        hint: str | None = None,
    ) -> None:
        self.kind = kind
        self.code = kind if code is None else code
        self.status = status
        self.request_id = request_id
        self.retry_after_seconds = retry_after_seconds
        self._method = method
        self._hint = hint
        parts = [kind if self.code == kind else f"{kind} ({self.code})"]
        if status is not None:
            parts.append(f"status {status}")
        super().__init__(f"{method}: {', '.join(parts)}" + ("" if hint is None else f": {hint}"))

    def __reduce__(self) -> tuple[Callable[..., ConsentError], tuple[object, ...]]:
        facts = (self.code, self.status, self.request_id, self.retry_after_seconds, self._hint)
        return _rebuild, (self._method, self.kind, *facts)


def _rebuild(
    method: str,
    kind: ErrorKind,
    code: str,
    status: int | None,
    request_id: str | None,
    retry_after_seconds: int | None,
    hint: str | None,
) -> ConsentError:
    """Supports pickle and copy, because an error may be sent to another process."""
    return ConsentError(
        method,
        kind,
        code=code,
        status=status,
        request_id=request_id,
        retry_after_seconds=retry_after_seconds,
        hint=hint,
    )


_KIND_OF: dict[int, ErrorKind] = {
    401: "unauthenticated",
    403: "permission-denied",
    404: "not-found",
    408: "timeout",
    409: "conflict",
    429: "rate-limited",
}
_ALWAYS_RAISED = frozenset({400, 401, 403, 422})


def kind_of_status(status: int) -> ErrorKind:
    """Other 4xx mean an invalid request; a status that is neither 4xx nor 5xx means a malformed response."""
    named = _KIND_OF.get(status)
    if named is not None:
        return named
    if status >= 500:
        return "server"
    return "invalid-request" if status >= 400 else "response"


def is_undecided(error: ConsentError) -> bool:
    """True if a check may become a denial. Errors that the caller has to fix are raised instead."""
    if error.status is None:
        return error.kind not in ("config", "invalid-request")
    return error.status not in _ALWAYS_RAISED
