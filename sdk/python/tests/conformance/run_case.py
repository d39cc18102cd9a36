"""Makes the calls of a case. sdk/conformance/run-case.mjs names them and judges their outcomes."""

from __future__ import annotations

import dataclasses
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from gpd_consent import ConsentError, Decision
from gpd_consent.fake import AsyncFakeConsent, FakeConsent

from .calls import Client, call_of, to_python, to_wire
from .drivers import Driver
from .servers import Servers, send_json

Outcome = dict[str, Any]


@dataclasses.dataclass
class _Run:
    driver: Driver
    now: Callable[[], float] = time.time
    """The clock of the clients during the next call."""
    clients: list[Client] = dataclasses.field(default_factory=list)
    """The last client is that of the case; all are closed at the end."""

    def open(self, url: str, key: str, **options: Any) -> None:
        self.clients.append(self.driver.client_class(url, key, clock=lambda: self.now(), **options))

    def open_from(self, env: dict[str, str]) -> None:
        self.clients.append(self.driver.client_class.from_env(env))

    def open_fake(self, **options: Any) -> None:
        """Opens a fake with the purposes of the conformance server."""
        fake = self.driver.fake_class(clock=lambda: self.now(), **options)
        fake.set_gpc_policy("support", "ignore")
        fake.set_gpc_policy("offers", "ask")
        self.clients.append(fake)

    def close(self) -> None:
        for client in self.clients:
            self.driver.run(client.close, None)


def _action(run: _Run, call: str, args: dict[str, Any], options: dict[str, Any]) -> Callable[[], Any]:
    if call == "fromEnv":
        return partial(run.open_from, **args)
    named = to_python(args)
    if call in ("configure", "fake"):
        return partial(run.open if call == "configure" else run.open_fake, **named)
    client = run.clients[-1] if run.clients else None
    if call == "cookieFor":
        assert isinstance(client, (FakeConsent, AsyncFakeConsent))
        return partial(client.cookie_for, **named)
    return partial(call_of(call, client), **named, **to_python(options))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    if error is not None:
        yield error
        yield from _chain(error.__cause__)
        yield from _chain(error.__context__)


def _told(error: BaseException) -> str:
    """Returns all that an error and its causes print."""
    return "\n".join(
        "\n".join([str(one), repr(one), repr(one.args), repr(vars(one)), *traceback.format_exception(one)])
        for one in _chain(error)
    )


def _failure(error: BaseException, driver: Driver) -> Outcome:
    if isinstance(error, driver.cancelled):
        return {"cancelled": True}
    if not isinstance(error, ConsentError):
        return {"problem": _told(error)}
    facts = {
        "kind": error.kind,
        "code": error.code,
        "status": error.status,
        "requestId": error.request_id,
        "retryAfterSeconds": error.retry_after_seconds,
        "detail": error.detail,
    }
    return {"error": facts}


def _perform(run: _Run, step: dict[str, Any]) -> Outcome:
    now, later = step.get("now"), step.get("laterSeconds", 0)
    run.now = (lambda: time.time() + later) if now is None else (lambda: now)
    address = step.get("cancelWhen")
    cancel_when = None if address is None else partial(send_json, "GET", address, None)
    action = _action(run, step["call"], step["args"], step.get("options", {}))
    started = time.perf_counter()
    try:
        result = run.driver.run(action, cancel_when)
        errors = [
            one.error
            for one in (result if isinstance(result, list) else [result])
            if isinstance(one, Decision)
        ]
        outcome = {
            "result": to_wire(result),
            "printed": "".join(_told(error) for error in errors if error is not None),
        }
    except (Exception, run.driver.cancelled) as error:
        outcome = {**_failure(error, run.driver), "printed": _told(error)}
    return {**outcome, "elapsedMs": (time.perf_counter() - started) * 1000}


def run_case(name: str, servers: Servers, driver: Driver) -> None:
    run = _Run(driver)
    try:
        step = send_json("POST", f"{servers['runs']}/{name}", {})
        while not step.get("done"):
            step = send_json("POST", f"{servers['runs']}/{step['run']}", _perform(run, step))
    finally:
        run.close()
        driver.close()
    assert "problem" not in step, step["problem"]
