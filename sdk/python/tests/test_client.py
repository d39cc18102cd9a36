from __future__ import annotations

import copy
import json
import pickle
import tomllib
from collections.abc import Callable
from typing import Any

import httpx
import pytest

import gpd_consent
from gpd_consent import ConsentError
from support import GRANTED, HERE, KEY, PERSON, client_of, kind_of, says


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.is_allowed(None, "a"),
        lambda client: client.is_allowed(7, "a"),
        lambda client: client.is_allowed("u", "a", min_seq=True),
        lambda client: client.is_allowed("u", "a", min_seq=1.5),
        lambda client: client.can_process_many("many"),
        lambda client: client.can_process_many([None]),
        lambda client: client.can_process_many([("u", "a", "b")]),
        lambda client: client.grant("u", "newsletter"),
        lambda client: client.grant("u", [""]),
        lambda client: client.grant("u", ["a"], policy_version=object()),
        lambda client: client.grant("u", ["a"], idempotency_key="a\n"),
        lambda client: client.receipt(2**53),
        lambda client: client.decision("req_1\n"),
        lambda client: client.report_outcome("req_1\n", "fraud"),
        lambda client: client.report_outcome("req_1", ["fraud"]),
        lambda client: client.sessions.create(""),
    ],
)
def test_what_callers_without_types_hand_in_is_refused_before_any_call(call: Callable[[Any], object]) -> None:
    def fail(_request: httpx.Request) -> httpx.Response:
        raise AssertionError("it was sent")

    assert kind_of(lambda: call(client_of(fail))) == "invalid-request invalid-request"


@pytest.mark.parametrize("seconds", [0, -1, 601, float("nan"), True, "2"])
def test_a_time_that_is_none_is_refused(seconds: Any) -> None:
    client = client_of(says(GRANTED))
    assert kind_of(lambda: client.is_allowed(PERSON, "a", timeout=seconds)) == "config config"
    assert kind_of(lambda: client_of(says(GRANTED), timeout=seconds)) == "config config"
    assert kind_of(lambda: client.is_allowed(PERSON, "a", timeout=60.001)) == "config config"


def test_neither_client_nor_error_shows_the_key_or_what_was_sent() -> None:
    def broken(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError(f"{request.headers} {request.content!r}", request=request)

    client = client_of(broken, on_unavailable="error", retries=0)
    shown = repr(client) + str(client) + repr(client._settings)
    with pytest.raises(ConsentError) as error:
        client.is_allowed(PERSON, "a")
    assert error.value.__cause__ is None
    assert error.value.__context__ is None
    shown += repr(error.value) + repr(vars(error.value))
    assert KEY not in shown
    assert PERSON not in shown


def test_the_message_and_no_value_survive_pickle_and_copy() -> None:
    error = ConsentError("grant", "rate-limited", status=429, request_id="req_1", retry_after_seconds=3)
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301
        assert str(other) == str(error) == "grant: rate-limited, status 429"
        assert (other.kind, other.request_id, other.retry_after_seconds) == ("rate-limited", "req_1", 3)


def test_verify_proof_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert kind_of(lambda: gpd_consent.verify_proof("", vkey="")) == "config no-cryptography"


@pytest.mark.parametrize("text", [None, 7, "\ud800", "c2sp.org/tlog-proof@v1\n\n"])
def test_a_proof_that_is_no_text_is_malformed(text: Any) -> None:
    vkey = json.loads((HERE.parent / "conformance" / "cases.json").read_text(encoding="utf-8"))
    known = next(case for case in vkey["cases"] if case["name"] == "proof-verifies")["steps"][0]["args"][
        "vkey"
    ]
    assert kind_of(lambda: gpd_consent.verify_proof(text, vkey=known)) == "proof malformed-proof"
    assert kind_of(lambda: gpd_consent.verify_proof("", vkey=text)) == "proof malformed-key"


def test_a_header_that_came_twice_is_refused() -> None:
    pairs = [
        ("webhook-id", "a"),
        ("Webhook-Id", "b"),
        ("webhook-timestamp", "1"),
        ("webhook-signature", "v1,"),
    ]
    secret = "whsec_AAcOFRwjKjE4P0ZNVFtiaXB3foWMk5qhqK+2vcTL0tk="
    for headers in (pairs, httpx.Headers(pairs)):
        call = lambda given=headers: gpd_consent.verify_webhook(b"{}", given, secrets=secret)  # noqa: E731
        assert kind_of(call) == "proof missing-header"


@pytest.mark.parametrize(
    "wrong",
    [
        {"tolerance_seconds": float("nan")},
        {"tolerance_seconds": float("inf")},
        {"now": float("nan")},
        {"secrets": None},
        {"secrets": [None]},
    ],
)
def test_a_window_or_a_secret_that_is_none_is_refused_before_the_delivery(wrong: dict[str, Any]) -> None:
    given = {"secrets": "whsec_AAcOFRwjKjE4P0ZNVFtiaXB3foWMk5qhqK+2vcTL0tk=", **wrong}
    assert kind_of(lambda: gpd_consent.verify_webhook(b"{}", {}, **given)) == "config config"


@pytest.mark.parametrize("body", [{"type": "consent.granted"}, 2, None])
def test_a_delivery_whose_body_was_parsed_says_so(body: Any) -> None:
    secret = f"whsec_{'A' * 43}="
    headers = gpd_consent.sign_webhook("{}", secret=secret)
    with pytest.raises(gpd_consent.ConsentError, match="raw bytes") as caught:
        gpd_consent.verify_webhook(body, headers, secrets=secret)
    assert caught.value.kind == "config"


def test_the_version_is_that_of_the_package() -> None:
    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert gpd_consent.__version__ == project["version"]
