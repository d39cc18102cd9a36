from __future__ import annotations

import gzip
import json
from collections.abc import Iterator

import httpx
import pytest

from gpd_consent._course import MAX_BODY_BYTES
from gpd_consent._json import MALFORMED, parse_json
from support import GRANTED, PERSON, client_of, says


def test_a_decision_is_as_true_as_its_allowed() -> None:
    assert client_of(says(GRANTED)).can_process(PERSON, "a")
    assert not client_of(says({**GRANTED, "allowed": False})).can_process(PERSON, "a")
    assert not client_of(says({})).can_process(PERSON, "a")


def test_an_answer_of_more_than_4_mib_denies() -> None:
    large = {**GRANTED, "padding": "x" * MAX_BODY_BYTES}
    decision = client_of(says(large)).can_process(PERSON, "a")
    assert decision.error is not None
    assert decision.error.kind == "response"


def test_a_coded_body_is_malformed_and_is_not_even_read() -> None:
    class Bomb(httpx.SyncByteStream):
        read = 0

        def __iter__(self) -> Iterator[bytes]:
            self.read += 1
            yield gzip.compress(json.dumps(GRANTED).encode())

    bomb = Bomb()

    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-encoding": "gzip"}, stream=bomb)

    decision = client_of(answer).can_process(PERSON, "a")
    assert decision.error is not None
    assert (decision.error.kind, decision.error.status) == ("response", 200)
    assert bomb.read == 0


@pytest.mark.parametrize(
    "text",
    [b"NaN", b'{"a": Infinity}', b"\xff", b"\xef\xbb\xbf{}", b"[" * 100_000, b"1" * 10_000, b"{'a': 1}"],
)
def test_what_python_would_read_or_choke_on_is_malformed(text: bytes) -> None:
    assert parse_json(text) is MALFORMED
