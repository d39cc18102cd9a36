"""Substitutes variables and compares results, as conformance/README.md says."""

from __future__ import annotations

import re
from typing import Any

_VARIABLE = re.compile(r"\$\{(\w+)\}")


def substitute(value: Any, variables: dict[str, Any]) -> Any:
    """Raises KeyError for an unknown name."""
    if isinstance(value, str):
        whole = _VARIABLE.fullmatch(value)
        if whole is not None:
            return variables[whole[1]]
        return _VARIABLE.sub(lambda found: str(variables[found[1]]), value)
    if isinstance(value, list):
        return [substitute(item, variables) for item in value]
    if not isinstance(value, dict):
        return value
    if list(value) == ["$repeat"]:
        item, times = value["$repeat"]
        return [substitute(item, variables) for _ in range(times)]
    return {name: substitute(inner, variables) for name, inner in value.items()}


def _match(actual: Any, name: str, rule: Any, at: str) -> str | None:
    if name == "$match":
        holds = isinstance(actual, str) and re.search(rule, actual) is not None
    elif name == "$type":
        holds = type(actual) is {"string": str, "integer": int, "boolean": bool}[rule]
    elif name == "$includes":
        holds = isinstance(actual, list) and any(difference(item, rule, at) is None for item in actual)
    else:
        raise ValueError(f"there is no matcher {name}")
    return None if holds else f"{at}: {actual!r} is not {name} {rule!r}"


def difference(actual: Any, expected: Any, at: str = "result", *, exact: bool = False) -> str | None:
    """Returns the first difference, or None. `exact`: an object may have no unexpected field."""
    if isinstance(expected, list):
        if not isinstance(actual, list) or len(actual) != len(expected):
            return f"{at}: {actual!r} is no list of {len(expected)}"
        pairs = [(f"{at}[{i}]", actual[i], item) for i, item in enumerate(expected)]
    elif not isinstance(expected, dict):
        # Here True must not equal 1, as it does in Python.
        same = type(actual) is type(expected) and actual == expected
        return None if same else f"{at}: {actual!r}, expected {expected!r}"
    elif len(expected) == 1 and next(iter(expected)).startswith("$"):
        [(name, rule)] = expected.items()
        return _match(actual, name, rule, at)
    elif not isinstance(actual, dict):
        return f"{at}: {actual!r} is no object"
    else:
        surplus = [name for name in actual if exact and name not in expected]
        if surplus:
            return f"{at}: {', '.join(surplus)} must not be there"
        pairs = [(f"{at}.{name}", actual.get(name), value) for name, value in expected.items()]
    found = (difference(inner, wanted, place, exact=exact) for place, inner, wanted in pairs)
    return next((one for one in found if one is not None), None)


def within(value: float, limits: dict[str, int]) -> bool:
    return limits.get("min", 0) <= value <= limits.get("max", float("inf"))
