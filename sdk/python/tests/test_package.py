"""Tries the package as people install it, in an empty folder, following the README word by word."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import fastapi_page
import httpx
import pytest
from fastapi_guard import create_app

from conformance.servers import Servers
from gpd_consent.fake import AsyncFakeConsent

HERE = Path(__file__).parents[1]
README = (HERE / "README.md").read_text(encoding="utf-8")
PINS = HERE / "requirements-dev.txt"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
ASK, ASK_ASYNC, WHY, ERRORS, WRITES, PAGE, PROOFS, WEBHOOK, SIGN, FAKE = BLOCKS


class Folder:
    def __init__(self, path: Path, servers: Servers) -> None:
        self.path = path
        self.environ = {
            "PATH": f"{path / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "GPD_CONSENT_URL": servers["url"],
            "GPD_CONSENT_KEY": servers["keys"]["secret"],
            "LEDGER_VKEY": servers["vkey"],
        }

    def python(self, name: str, code: str, *args: str, **more: str) -> list[str]:
        (self.path / name).write_text(code, encoding="utf-8")
        command = [str(self.path / ".venv" / "bin" / "python"), "-W", "error", name, *args]
        told = subprocess.run(
            command, cwd=self.path, env=self.environ | more, check=True, stdout=subprocess.PIPE, text=True
        )
        return told.stdout.splitlines()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, servers: Servers) -> Folder:
    path = tmp_path_factory.mktemp("shop")
    venv.create(path / ".venv")
    [spec] = re.findall(r"`pip install '(PATH/sdk/python\S+)'`", README)
    # Uses the pip of the tests, because installing another takes as long as the whole test.
    pip = [sys.executable, "-m", "pip", "--python", str(path / ".venv"), "install", "--quiet"]
    # Constrained to the pinned versions, so that the result does not depend on the date.
    environ = os.environ | {"PIP_CONSTRAINT": str(PINS)}
    subprocess.run(
        [*pip, spec.replace("PATH/sdk/python", str(HERE))], cwd=path, env=environ, check=True, timeout=300
    )
    return Folder(path, servers)


def test_the_readme_asks_for_a_boolean_first() -> None:
    assert ".is_allowed(" in ASK
    assert "can_process" not in ASK


def test_it_does_what_the_readme_shows(folder: Folder) -> None:
    again = ASK.split("\n\n")[-1]
    said = folder.python("readme.py", "\n".join([ASK, ASK_ASYNC, ERRORS, WHY, PROOFS, WRITES, again]))
    assert said[:2] == ["do not", "not allowed"]
    assert re.fullmatch(r"True granted ProofRef\(seq=\d+, hash='[0-9a-f]{64}'\)", said[2])
    assert re.fullmatch(r"consent\.granted \S+Z", said[3])
    assert said[4:] == ["do not"]


def test_it_verifies_a_webhook_as_the_readme_shows(folder: Folder) -> None:
    before = """
import os
from types import SimpleNamespace

raw_body = b'{"type": "consent.withdrawn", "timestamp": "now", "seq": 4, "data": {}}'
"""
    signed = f"{before}\n{SIGN}\nrequest = SimpleNamespace(headers=headers)"
    code = f"{signed}\n{WEBHOOK}\nprint(event.id, event.type)"
    secret = f"whsec_{'A' * 43}="
    assert folder.python("webhook.py", code, WEBHOOK_SECRET=secret) == ["evt_1 consent.withdrawn"]


def test_it_has_a_fake_as_the_readme_shows(folder: Folder) -> None:
    check = "print(consent.is_allowed('u-1', 'newsletter'))"
    assert folder.python("fake.py", f"{FAKE}\n{check}") == ["False"]
    unbroken = re.sub(r"^consent\.set_unavailable.*$", "", FAKE, flags=re.MULTILINE)
    assert folder.python("fake.py", f"{unbroken}\n{check}") == ["True"]


def test_it_runs_its_example(folder: Folder) -> None:
    example = (HERE / "examples" / "check.py").read_text(encoding="utf-8")
    said = folder.python("check.py", example, f"u-{secrets.token_hex(8)}", "newsletter")
    assert said == ["before: False never-asked", "granted: True", "withdrawn: False"]


def test_it_brings_types_that_tell_a_boolean_from_a_decision(folder: Folder) -> None:
    source = folder.path / "typed.py"
    source.write_text(
        """
from gpd_consent import Consent, ConsentClient, Decision
from gpd_consent.fake import FakeConsent

clients: list[Consent] = [ConsentClient.from_env(), FakeConsent()]
allowed: bool = clients[0].is_allowed("a", "b")
decision: Decision = clients[1].can_process("a", "b")
wrong: bool = clients[0].can_process("a", "b")  # type: ignore[assignment]
""",
        encoding="utf-8",
    )
    interpreter = str(folder.path / ".venv" / "bin" / "python")
    checks = ["--strict", "--python-executable", interpreter, "--cache-dir", str(folder.path / "cache")]
    subprocess.run([sys.executable, "-m", "mypy", *checks, str(source)], cwd=folder.path, check=True)


def test_it_holds_its_licence_and_its_types(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=HERE, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "gpd_consent/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"gpd_consent"}


def test_the_versions_are_pinned() -> None:
    lines = [line for line in PINS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+==[0-9.]+", line) for line in lines)


def test_it_renders_a_page_of_fastapi_as_readme_and_example_show() -> None:
    example = (HERE / "examples" / "fastapi_page.py").read_text(encoding="utf-8")
    assert PAGE in re.sub(r"^ {8}", "", example, flags=re.MULTILINE)

    async def main() -> list[tuple[bool, bool]]:
        now = 1_767_225_600.0
        consent = AsyncFakeConsent(clock=lambda: now)
        await consent.grant("u-1", ["ads"])
        cookie = consent.cookie_for("u-1")
        transport = httpx.ASGITransport(fastapi_page.create_app(consent))

        async def ask(**headers: str) -> tuple[bool, bool]:
            # Another browser each time, without the cookies of the one before.
            async with httpx.AsyncClient(transport=transport, base_url="http://shop.example") as shop:
                response = await shop.get("/", headers=headers)
                sets = response.headers.get("set-cookie", "").startswith("gpd_consent=ey")
                return "Seen elsewhere" in response.text, sets

        said = [await ask(), await ask(cookie=cookie), await ask(cookie=cookie, **{"sec-gpc": "1"})]
        said += [await ask(**{"x-user": "u-1"}), await ask(cookie=cookie, **{"x-user": "u-2"})]
        now += 3600
        return [*said, await ask(cookie=cookie)]

    yes, no = (True, False), (False, False)
    assert asyncio.run(main()) == [no, yes, no, yes, no, (True, True)]


def test_it_guards_a_route_of_fastapi_as_the_example_shows() -> None:
    async def main() -> list[tuple[int, object]]:
        consent = AsyncFakeConsent()
        transport = httpx.ASGITransport(create_app(consent))
        async with httpx.AsyncClient(transport=transport, base_url="http://shop.example") as shop:

            async def ask(**headers: str) -> tuple[int, object]:
                response = await shop.get("/offers", headers=headers)
                return response.status_code, response.json()

            said = [await ask(), await ask(**{"x-user": "u-1"})]
            await consent.grant("u-1", ["newsletter"])
            said.append(await ask(**{"x-user": "u-1"}))
            consent.set_unavailable(True)
            return [*said, await ask(**{"x-user": "u-1"})]

    needed = {"error": "consent-needed", "purpose": "newsletter"}
    assert asyncio.run(main()) == [
        (401, {"detail": {"error": "sign-in-needed"}}),
        (403, {"detail": {**needed, "reason": "never-asked"}}),
        (200, {"offers": ["for u-1"]}),
        (403, {"detail": {**needed, "reason": "unavailable"}}),
    ]
