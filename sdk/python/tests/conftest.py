from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from conformance.drivers import DRIVERS
from conformance.servers import Servers, case_names, start_servers

_reports: list[tuple[str, bool]] = []
"""Name of a case and its result, once per client."""


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    with start_servers() as told:
        yield told


@pytest.fixture
def server() -> Iterator[Callable[[Callable[[socket.socket], None]], str]]:
    """Starts a server that treats each connection in the same way; returns its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    accepted: list[socket.socket] = []
    ending = threading.Event()

    def start(serve: Callable[[socket.socket], None]) -> str:
        def run(connection: socket.socket) -> None:
            with connection:
                try:
                    connection.recv(65536)
                    serve(connection)
                    ending.wait(10)
                except OSError:
                    pass

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                accepted.append(connection)
                threading.Thread(target=run, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    ending.set()
    listener.close()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    for name, value in report.user_properties:
        if name == "conformance" and report.when == "call":
            _reports.append((str(value), report.passed))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """bin/sdks.mjs compares this line between the languages; a case counts if both clients passed it."""
    names = {name for name, _ in _reports}
    if not names:
        return
    passed = [
        name for name in names if [good for one, good in _reports if one == name] == [True] * len(DRIVERS)
    ]
    line = f"gpd-conformance python {len(passed)}/{len(case_names())}\n"
    terminalreporter.write("\n" + line)
    report = os.environ.get("GPD_CONFORMANCE_REPORT")
    told = [f"gpd-case python {'passed' if name in passed else 'failed'} {name}\n" for name in sorted(names)]
    if report:
        with open(report, "a", encoding="utf-8") as file:
            file.write("".join(told) + line)
