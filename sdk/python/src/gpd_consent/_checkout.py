"""A verdict as advice to a checkout. It never refuses, and whatever goes wrong is `no-verdict`."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from ._types import Verdict

CheckoutAdvice = Literal["proceed", "step-up", "no-verdict"]

_MAX_AGE_SECONDS = 30 * 60
"""A visitor can send the id of an old visit. The page calls `identify` again at the checkout."""


def advice_of(verdict: Verdict, now: float, context: str | None) -> CheckoutAdvice:
    if context is not None and verdict.raw.get("context") != context:
        return "no-verdict"
    try:
        age = now - datetime.fromisoformat(verdict.decided_at).timestamp()
    except ValueError:
        return "no-verdict"
    # A verdict under an objection must not be acted on.
    if verdict.restricted or age > _MAX_AGE_SECONDS:
        return "no-verdict"
    return "proceed" if verdict.class_ == "human" else "step-up"
