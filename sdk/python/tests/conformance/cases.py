"""Reads the shared cases and validates them, so that a runner fails on anything that it does not know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .schema import problems

FOLDER = Path(__file__).parents[3] / "conformance"

Case = dict[str, Any]


def read_file(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def check_cases(file: Any) -> list[Case]:
    schema = read_file("schema.json")
    found = list(problems(file, schema, schema["$defs"], "cases"))
    if found:
        raise ValueError("\n".join(found))
    cases: list[Case] = file["cases"]
    if len({case["name"] for case in cases}) != len(cases):
        raise ValueError("two cases have one name")
    return cases


def read_cases() -> list[Case]:
    return check_cases(read_file("cases.json"))
