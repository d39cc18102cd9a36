from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gpd_consent._schedule import jitter, parse_retry_after, wait_before

NOW = datetime(2026, 11, 20, 10, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(("retry", "bound"), [(1, 0.1), (2, 0.2), (4, 0.8), (5, 1.0), (10, 1.0)])
def test_the_jitter_is_full_below_a_bound_that_doubles_up_to_a_second(retry: int, bound: float) -> None:
    assert jitter(retry, 0) == 0
    assert jitter(retry, 0.5) == pytest.approx(bound / 2)
    assert jitter(retry, 0.999) < bound


def test_the_wait_is_retry_after_and_the_jitter() -> None:
    assert wait_before(1, 1, 2.0, 0.5) == pytest.approx(1.05)
    assert wait_before(1, None, 2.0, 0.5) == pytest.approx(0.05)


def test_there_is_no_wait_that_would_reach_the_deadline() -> None:
    assert wait_before(1, 2, 2.0, 0) is None
    assert wait_before(1, 2, 2.001, 0) == 2.0
    assert wait_before(2, None, 0.1, 0.5) is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("0", 0), (" 30 ", 30), ("Fri, 20 Nov 2026 10:00:30 GMT", 30), ("Fri, 20 Nov 2026 09:00:00 GMT", 0)],
)
def test_retry_after(value: str, seconds: int) -> None:
    assert parse_retry_after(value, NOW) == seconds


@pytest.mark.parametrize("value", [None, "", "-1", "1.5", "soon", "99999999999", "Fri, never", "٣"])
def test_what_is_no_retry_after(value: str | None) -> None:
    assert parse_retry_after(value, NOW) is None
