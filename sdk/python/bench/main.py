"""What the client adds to bare httpx. Prints a line of JSON for `npm run bench -- sdk`: the p50 a round."""

import json
import os
import time
from collections.abc import Callable

import httpx

from gpd_consent import ConsentClient

URL = f"{os.environ['GPD_CONSENT_URL']}/v1/consent/can-process"
client = ConsentClient.from_env()
plain = httpx.Client(headers={"authorization": f"Bearer {os.environ['GPD_CONSENT_KEY']}"}, trust_env=False)


def sdk(principal_id: str) -> bool:
    return client.is_allowed(principal_id, "newsletter")


def bare(principal_id: str) -> bool:
    response = plain.post(URL, json={"principalId": principal_id, "purpose": "newsletter"})
    allowed: bool = response.json()["allowed"]
    return allowed


def p50(call: Callable[[str], bool], count: int) -> float:
    times = []
    for i in range(count):
        before = time.perf_counter_ns()
        assert call(f"person-{i}") is True
        times.append((time.perf_counter_ns() - before) / 1000)
    return sorted(times)[count // 2]


def number(name: str) -> int:
    return int(os.environ[name])


p50(sdk, number("BENCH_WARM_UP"))
p50(bare, number("BENCH_WARM_UP"))
told: dict[str, list[float]] = {"sdk": [], "bare": []}
for _ in range(number("BENCH_ROUNDS")):
    told["sdk"].append(p50(sdk, number("BENCH_COUNT")))
    told["bare"].append(p50(bare, number("BENCH_COUNT")))
print(json.dumps(told))
