"""Parts of the fake that no shared case can see."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

import pytest

from gpd_consent import AsyncConsent, AsyncConsentClient, Consent, ConsentClient, ConsentError
from gpd_consent.fake import AsyncFakeConsent, FakeCall, FakeConsent


def test_it_remembers_its_calls() -> None:
    fake = FakeConsent()
    fake.set_decision("req_1", class_="undeclared_automation")
    fake.decision("req_1")
    fake.is_allowed("u-1", "newsletter")
    assert fake.calls == [
        FakeCall("decision", {"request_id": "req_1"}),
        FakeCall("is_allowed", {"principal_id": "u-1", "purpose": "newsletter"}),
    ]


def test_it_fails_with_the_facts_that_it_was_told() -> None:
    fake = FakeConsent()
    fake.set_next_error("rate-limited", retry_after_seconds=9)
    with pytest.raises(ConsentError) as error:
        fake.ping()
    assert (error.value.status, error.value.retry_after_seconds) == (429, 9)


def test_a_text_is_no_list_of_purposes() -> None:
    with pytest.raises(ConsentError) as error:
        FakeConsent().grant("u-1", "newsletter")
    assert error.value.kind == "invalid-request"


def surface(owner: type) -> dict[str, inspect.Signature]:
    methods: Iterable[str] = [
        name for name in dir(Consent) if not name.startswith("_") and name not in ("sessions", "history_all")
    ]
    return {name: inspect.signature(getattr(owner, name)) for name in methods}


def test_clients_and_fakes_have_one_surface() -> None:
    # mypy checks the assignments; the comparison is for runs without mypy.
    _blocking: list[Consent] = [FakeConsent(), ConsentClient("http://127.0.0.1:1", "gpd_sk_x")]
    _awaited: list[AsyncConsent] = [AsyncFakeConsent(), AsyncConsentClient("http://127.0.0.1:1", "gpd_sk_x")]
    expected = surface(ConsentClient)
    for owner in (FakeConsent, AsyncConsentClient, AsyncFakeConsent, Consent, AsyncConsent):
        assert surface(owner) == expected, owner
