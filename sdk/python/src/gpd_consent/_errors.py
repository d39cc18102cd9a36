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
    """Holds neither the key nor a principal id, nor words that a server wrote."""

    kind: ErrorKind
    code: str
    """The server's error code, `closed`, why a proof fails, or the kind itself."""
    status: int | None
    request_id: str | None
    """Names the server's log line."""
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
    """For pickle and copy: an error may cross a process."""
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
    """Every 4xx that is not named is the caller's request; what is neither 4xx nor 5xx is an odd answer."""
    named = _KIND_OF.get(status)
    if named is not None:
        return named
    if status >= 500:
        return "server"
    return "invalid-request" if status >= 400 else "response"


def is_undecided(error: ConsentError) -> bool:
    """True when a check may become a denial: what the caller has to mend is raised instead."""
    if error.status is None:
        return error.kind not in ("config", "invalid-request")
    return error.status not in _ALWAYS_RAISED
