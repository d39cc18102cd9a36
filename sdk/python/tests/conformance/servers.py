"""Starts the servers, and sends requests to the stub."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

FOLDER = Path(__file__).parents[3] / "conformance"
Servers = dict[str, Any]


@contextlib.contextmanager
def start_servers() -> Iterator[Servers]:
    """Starts the servers, unless GPD_CONFORMANCE names running ones."""
    known = os.environ.get("GPD_CONFORMANCE")
    if known:
        yield json.loads(known)
        return
    command = ["node", str(FOLDER / "serve.mjs")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        line = child.stdout.readline()
        if not line:
            raise RuntimeError("serve.mjs ended before it told its addresses")
        try:
            yield json.loads(line)
        finally:
            child.stdin.close()
            child.wait()


def send_json(method: str, url: str, value: Any) -> Any:
    """Without httpx, because a case must have separate connections."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.netloc, timeout=60)
    try:
        connection.request(method, address.path, json.dumps(value))
        response = connection.getresponse()
        assert response.status == 200, f"the runner answered {response.status}"
        return json.loads(response.read())
    finally:
        connection.close()


def case_names() -> list[str]:
    file = json.loads((FOLDER / "cases.json").read_text(encoding="utf-8"))
    return [case["name"] for case in file["cases"]]
