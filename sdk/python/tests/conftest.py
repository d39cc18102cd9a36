from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from conformance.drivers import DRIVERS
from conformance.servers import Servers, start_servers

_reports: list[tuple[str, bool]] = []
"""Name of a case and whether it passed, once for each client."""


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    with start_servers() as told:
        yield told


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    for name, value in report.user_properties:
        if name == "conformance" and report.when == "call":
            _reports.append((str(value), report.passed))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What the root compares between the languages; a case counts when both clients passed it."""
    names = {name for name, _ in _reports}
    if not names:
        return
    passed = [
        name for name in names if [good for one, good in _reports if one == name] == [True] * len(DRIVERS)
    ]
    line = f"gpd-conformance python {len(passed)}/{len(names)}\n"
    terminalreporter.write("\n" + line)
    report = os.environ.get("GPD_CONFORMANCE_REPORT")
    if report:
        with open(report, "a", encoding="utf-8") as file:
            file.write(line)
