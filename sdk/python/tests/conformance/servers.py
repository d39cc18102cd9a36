"""Starts the servers, and sends requests to the stub."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from .cases import FOLDER

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


def send_json(method: str, url: str, value: Any = None, headers: Mapping[str, str] | None = None) -> Any:
    """Without httpx, because a case must have separate connections."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.netloc, timeout=10)
    try:
        body = None if value is None else json.dumps(value)
        more = {} if headers is None else {**headers, "content-type": "application/json"}
        connection.request(method, address.path, body, more)
        response = connection.getresponse()
        assert 200 <= response.status < 300, f"the stub answered {response.status}"
        return json.loads(response.read())
    finally:
        connection.close()
