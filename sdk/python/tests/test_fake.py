from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable

import pytest

from gpd_consent import (
    AsyncConsent,
    AsyncConsentClient,
    Consent,
    ConsentClient,
    ConsentError,
    ReportedOutcome,
)
from gpd_consent.fake import AsyncFakeConsent, FakeCall, FakeConsent


def kind_of(error: pytest.ExceptionInfo[ConsentError]) -> tuple[str, str]:
    return error.value.kind, error.value.code


def test_it_allows_nothing_that_was_not_granted() -> None:
    fake = FakeConsent()
    assert fake.is_allowed("u-1", "newsletter") is False
    assert fake.can_process("u-1", "newsletter").reason == "never-asked"
    fake.grant("u-1", ["newsletter"])
    assert fake.is_allowed("u-1", "newsletter") is True
    assert fake.is_allowed("u-2", "newsletter") is False
    assert fake.is_allowed("u-1", "support") is False


def test_it_follows_the_last_word_and_tells_it_as_state_and_history() -> None:
    fake = FakeConsent()
    fake.grant("u-1", ["newsletter"])
    written = fake.withdraw("u-1", ["newsletter"])
    decision = fake.can_process("u-1", "newsletter")
    assert decision.reason == "withdrawn"
    assert decision.proof is not None
    assert (decision.proof.seq, decision.proof.hash) == (written.seq, written.hash)
    fake.deny("u-1", ["newsletter"])
    assert [one.reason for one in fake.can_process_many([("u-1", "newsletter")])] == ["denied"]
    assert [(one.purpose, one.choice) for one in fake.state("u-1").purposes] == [("newsletter", "denied")]
    page = fake.history("u-1", limit=2)
    assert [event.type for event in page.events] == ["consent.denied", "consent.withdrawn"]
    rest = fake.history("u-1", limit=2, cursor=page.next_cursor)
    assert [event.type for event in rest.events] == ["consent.granted"]
    assert rest.next_cursor is None


def test_it_fails_as_a_server_that_is_gone() -> None:
    fake = FakeConsent()
    fake.grant("u-1", ["newsletter"])
    fake.set_unavailable(True)
    decision = fake.can_process("u-1", "newsletter")
    assert (decision.allowed, decision.reason, decision.proof) == (False, "unavailable", None)
    assert decision.error is not None
    assert decision.error.kind == "network"
    with pytest.raises(ConsentError) as error:
        fake.grant("u-1", ["newsletter"])
    assert kind_of(error) == ("network", "network")
    fake.set_unavailable(False)
    assert fake.is_allowed("u-1", "newsletter") is True
    strict = FakeConsent(on_unavailable="error")
    strict.set_unavailable(True)
    with pytest.raises(ConsentError) as error:
        strict.is_allowed("u-1", "newsletter")
    assert kind_of(error) == ("network", "network")


def test_it_refuses_what_the_client_refuses() -> None:
    fake = FakeConsent()
    with pytest.raises(ConsentError) as error:
        fake.is_allowed("", "newsletter")
    assert kind_of(error) == ("invalid-request", "invalid-request")
    with pytest.raises(ConsentError) as error:
        fake.grant("u-1", "newsletter")
    assert kind_of(error) == ("invalid-request", "invalid-request")
    for call in (lambda: fake.receipt(1), lambda: fake.proof(1), lambda: fake.decision("req_1")):
        with pytest.raises(ConsentError) as error:
            call()
        assert error.value.kind == "not-found"
    fake.close()
    with pytest.raises(ConsentError) as error:
        fake.ping()
    assert kind_of(error) == ("config", "closed")


def test_it_answers_the_verdicts_it_was_given_and_remembers_its_calls() -> None:
    fake = FakeConsent()
    fake.set_decision("req_1", class_="undeclared_automation", suspect_score=0.9)
    verdict = fake.decision("req_1")
    assert (verdict.request_id, verdict.class_, verdict.suspect_score) == (
        "req_1",
        "undeclared_automation",
        0.9,
    )
    fake.is_allowed("u-1", "newsletter")
    assert fake.calls == [
        FakeCall("decision", {"request_id": "req_1"}),
        FakeCall("is_allowed", {"principal_id": "u-1", "purpose": "newsletter"}),
    ]


def test_it_stores_an_outcome_once_of_a_decision_it_was_given() -> None:
    fake = FakeConsent()
    at = "2026-05-04T10:00:00.000Z"
    with pytest.raises(ConsentError) as error:
        fake.report_outcome("req_1", "fraud")
    assert kind_of(error) == ("not-found", "no-such-decision")
    fake.set_decision("req_1")
    stored = ReportedOutcome("req_1", "fraud", at)
    assert fake.report_outcome("req_1", "fraud", at=at) == stored
    assert fake.report_outcome("req_1", "fraud") == stored
    for outcome, other in (("other", None), ("fraud", "2026")):
        with pytest.raises(ConsentError) as error:
            fake.report_outcome("req_1", outcome, at=other)
        assert kind_of(error) == ("conflict", "idempotency-conflict")
    with pytest.raises(ConsentError) as error:
        fake.report_outcome("req_1", "")
    assert kind_of(error) == ("invalid-request", "invalid-request")
    args = {"request_id": "req_1", "outcome": "fraud", "at": "2026"}
    assert fake.calls[-1] == FakeCall("report_outcome", args)
    fake.set_unavailable(True)
    with pytest.raises(ConsentError) as error:
        fake.report_outcome("req_1", "fraud")
    assert kind_of(error) == ("network", "network")


def test_the_one_for_asyncio_has_the_same_memory() -> None:
    async def main() -> None:
        fake = AsyncFakeConsent()
        assert await fake.is_allowed("u-1", "newsletter") is False
        for write in (fake.deny, fake.withdraw, fake.grant):
            await write("u-1", ["newsletter"], gpc=False)
        assert await fake.is_allowed("u-1", "newsletter") is True
        assert [one.allowed for one in await fake.can_process_many([("u-1", "newsletter")])] == [True]
        assert len((await fake.history("u-1")).events) == 3
        assert (await fake.state("u-1")).purposes[0].choice == "granted"
        assert (await fake.sessions.create("u-1")).principal_id == "u-1"
        fake.set_decision("req_1", reason="monitor")
        assert (await fake.decision("req_1")).reason == "monitor"
        assert (await fake.report_outcome("req_1", "other")).outcome == "other"
        assert (await fake.ping()).status == "ok"
        for call in (fake.receipt, fake.proof):
            with pytest.raises(ConsentError, match="not-found"):
                await call(1)
        fake.set_unavailable(True)
        assert (await fake.can_process("u-1", "newsletter")).reason == "unavailable"
        assert fake.calls[1].method == "deny"
        await fake.close()
        with pytest.raises(ConsentError, match="closed"):
            await fake.is_allowed("u-1", "newsletter")

    asyncio.run(main())


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
