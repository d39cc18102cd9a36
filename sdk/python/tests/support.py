"""Helpers that several tests share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from gpd_consent import ConsentClient, ConsentError

KEY = "gpd_sk_" + "k" * 43
PERSON = "someone@shop.example"
GRANTED = {"allowed": True, "reason": "granted", "proof": {"seq": 1, "hash": "ab" * 32}}
HERE = Path(__file__).parents[1]

Answer = Callable[[httpx.Request], httpx.Response]


def client_of(answer: Answer, **options: Any) -> ConsentClient:
    return ConsentClient("http://127.0.0.1:1", KEY, transport=httpx.MockTransport(answer), **options)


def says(body: object, **more: Any) -> Answer:
    return lambda _request: httpx.Response(200, json=body, **more)


def kind_of(call: Callable[[], object]) -> str:
    with pytest.raises(ConsentError) as error:
        call()
    return f"{error.value.kind} {error.value.code}"
