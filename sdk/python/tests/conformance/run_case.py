"""Runs one case; raises an error that describes the problem."""

from __future__ import annotations

import dataclasses
import json
import secrets
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from gpd_consent import ConsentError, Decision
from gpd_consent.fake import AsyncFakeConsent, FakeConsent

from .calls import Client, call_of, to_python, to_wire
from .cases import Case
from .drivers import Driver
from .match import difference, substitute, within
from .servers import Servers, send_json

_HIDDEN = ("principal", "principal2", "plainPrincipal", "key", "publishableKey")


@dataclasses.dataclass
class _Run:
    driver: Driver
    variables: dict[str, Any]
    now: Callable[[], float] = time.time
    """The clock of the clients during the next call."""
    clients: list[Client] = dataclasses.field(default_factory=list)
    """The last client is that of the case; all are closed at the end."""

    def open(self, url: str, key: str, **options: Any) -> None:
        self.clients.append(self.driver.client_class(url, key, clock=lambda: self.now(), **options))

    def open_from(self, environ: dict[str, str]) -> None:
        self.clients.append(self.driver.client_class.from_env(environ))

    def open_fake(self, **options: Any) -> None:
        """Opens a fake with the purposes of the conformance server."""
        fake = self.driver.fake_class(clock=lambda: self.now(), **options)
        fake.set_gpc_policy("support", "ignore")
        fake.set_gpc_policy("offers", "ask")
        self.clients.append(fake)

    def close(self) -> None:
        for client in self.clients:
            self.driver.run(client.close, None)


def _make_variables(case: Case, servers: Servers, base: str) -> dict[str, Any]:
    return {
        "principal": f"käthe+{secrets.token_hex(8)}@shop.example",
        "principal2": f"käthe+{secrets.token_hex(8)}@shop.example",
        "plainPrincipal": f"u{secrets.token_hex(8)}",
        "unique": secrets.token_hex(8),
        "url": base,
        "key": servers["keys"][case.get("client", {}).get("key", "secret")],
        "publishableKey": servers["keys"]["publishable"],
        "vkey": servers["vkey"],
        "requestId": servers["requestId"],
        **servers["variables"],
    }


def _action(run: _Run, step: dict[str, Any]) -> Callable[[], Any]:
    args = substitute(step["args"], run.variables)
    options = to_python(substitute(step.get("options", {}), run.variables))
    if step["call"] == "configure":
        return partial(run.open, **to_python(args))
    if step["call"] == "fromEnv":
        [(name, environ)] = args.items()
        assert name == "env"
        return partial(run.open_from, environ)
    client = run.clients[-1] if run.clients else None
    if step["call"] == "cookieFor":
        return partial(_cookie_for, run, client, args["principalId"])
    return partial(call_of(step["call"], client), **to_python(args), **options)


def _cookie_for(run: _Run, client: Client | None, principal_id: str) -> str:
    """The cookie of this person's banner: of the fake, or as the server answers a session of the person."""
    if isinstance(client, (FakeConsent, AsyncFakeConsent)):
        return client.cookie_for(principal_id)
    session = run.driver.run(partial(call_of("sessions.create", client), principal_id), None)
    headers = {"authorization": f"Bearer {session.token}"}
    url = f"{run.variables['url']}/v1/consent/state"
    return f"gpd_consent={send_json('POST', url, {'principalId': principal_id}, headers)['state']}"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    if error is not None:
        yield error
        yield from _chain(error.__cause__)
        yield from _chain(error.__context__)


def _check_hidden(error: BaseException, hidden: list[str]) -> None:
    told = "\n".join(
        "\n".join([str(one), repr(one), repr(one.args), repr(vars(one)), *traceback.format_exception(one)])
        for one in _chain(error)
    )
    found = [secret for secret in hidden if secret in told]
    assert not found, f"the error tells {', '.join(found)}: {told}"


def _check_error(error: BaseException, expected: dict[str, Any]) -> None:
    assert isinstance(error, ConsentError), f"this is no ConsentError: {error!r}"
    facts = {
        "kind": error.kind,
        "code": error.code,
        "status": error.status,
        "requestId": error.request_id,
        "retryAfterSeconds": error.retry_after_seconds,
        "detail": error.detail,
    }
    assert difference(facts, expected, "error") is None, difference(facts, expected, "error")


def _check_outcome(run: _Run, expected: dict[str, Any], result: Any, error: BaseException | None) -> None:
    hidden = [run.variables[name] for name in _HIDDEN] + expected.get("hides", [])
    decisions = [
        one for one in (result if isinstance(result, list) else [result]) if isinstance(one, Decision)
    ]
    for told in (error, *(decision.error for decision in decisions)):
        if told is not None:
            _check_hidden(told, hidden)
    if expected.get("cancelled"):
        assert isinstance(error, run.driver.cancelled), f"cancelled, and it gave {error!r} {result!r}"
    elif "error" in expected:
        assert error is not None, f"it gave {result!r}, expected was an error"
        _check_error(error, expected["error"])
    elif error is not None:
        raise error
    elif "result" in expected:
        found = difference(to_wire(result), expected["result"])
        assert found is None, found


def _run_step(run: _Run, step: dict[str, Any]) -> None:
    came = run.variables["url"].replace("/c/", "/came/")
    count = step.get("cancelAfterRequests")
    cancel_when = None if count is None else partial(send_json, "GET", f"{came}/{count}")
    result, error = None, None
    later = step.get("laterSeconds", 0)
    now = step.get("now")
    run.now = (lambda: time.time() + later) if now is None else (lambda: now)
    action = _action(run, step)
    started = time.perf_counter()
    try:
        # The runner's own call, which uses the driver itself.
        is_own = step["call"] == "cookieFor"
        result = action() if is_own else run.driver.run(action, cancel_when)
    except (Exception, run.driver.cancelled) as raised:
        error = raised
    elapsed = (time.perf_counter() - started) * 1000
    expected = substitute(step["expect"], run.variables)
    _check_outcome(run, expected, result, error)
    limits = expected.get("elapsedMs")
    assert limits is None or within(elapsed, limits), f"it took {elapsed} ms, expected was {limits}"
    for name, path in step.get("save", {}).items():
        value = to_wire(result)
        for part in path.split(".") if path else []:
            value = value[part]
        run.variables[name] = value


def _check_request(request: dict[str, Any], each: dict[str, Any]) -> None:
    rest = {name: value for name, value in each.items() if name not in ("absentHeaders", "body")}
    found = difference(request, rest, "request")
    assert found is None, found
    there = [name for name in each.get("absentHeaders", []) if name in request["headers"]]
    assert not there, f"the request has {there}"
    if "body" in each:
        found = difference(json.loads(request["body"]), each["body"], "request.body", exact=True)
        assert found is None, found


def _check_keys(requests: list[dict[str, Any]], rule: str) -> None:
    keys = [one["headers"]["idempotency-key"] for one in requests if "idempotency-key" in one["headers"]]
    whole, different = len(keys) == len(requests), len(set(keys))
    right = {"none": not keys, "one": whole and different == 1, "distinct": whole and different == len(keys)}
    assert right[rule], f"Idempotency-Key: expected was {rule}, there were {keys}"


def _check_requests(requests: list[dict[str, Any]], expected: dict[str, Any]) -> None:
    count = expected.get("count", len(requests))
    assert len(requests) == count, f"{len(requests)} requests came, expected were {count}"
    sockets = len({request["connection"] for request in requests})
    assert within(sockets, expected.get("connections", {})), f"{sockets} connections were used"
    if "idempotencyKey" in expected:
        _check_keys(requests, expected["idempotencyKey"])
    for request in requests if "each" in expected else []:
        _check_request(request, expected["each"])
    for request, one in zip(requests, expected["inOrder"], strict=True) if "inOrder" in expected else []:
        _check_request(request, one)
    for i, limits in enumerate(expected.get("gapsMs", [])):
        gap = requests[i + 1]["atMs"] - requests[i]["atMs"]
        assert within(gap, limits), f"{gap} ms lay between request {i} and the next"


def _run_steps(run: _Run, case: Case) -> None:
    for i, step in enumerate(case["steps"]):
        time.sleep(step.get("waitMs", 0) / 1000)
        for _ in range(step.get("times", 1)):
            try:
                _run_step(run, step)
            except Exception as error:
                error.add_note(f"step {i} ({step['call']})")
                raise


def run_case(case: Case, servers: Servers, driver: Driver) -> None:
    name = secrets.token_hex(8)
    base = f"{servers['stub']}/c/{name}" if case["kind"] == "stub" else servers["url"]
    run = _Run(driver, _make_variables(case, servers, base))
    if case["kind"] == "stub":
        send_json("PUT", f"{servers['stub']}/script/{name}", substitute(case["script"], run.variables))
    try:
        options = to_python({word: value for word, value in case.get("client", {}).items() if word != "key"})
        if case["kind"] == "fake":
            run.open_fake(**options)
        elif case["kind"] != "pure":
            run.open(base, run.variables["key"], **options)
        _run_steps(run, case)
        if case.get("fake"):
            run.variables = _make_variables(case, servers, base)
            run.open_fake()
            _run_steps(run, case)
    finally:
        run.close()
        driver.close()
    if "requests" in case:
        requests = send_json("GET", f"{servers['stub']}/requests/{name}")
        _check_requests(requests, substitute(case["requests"], run.variables))
