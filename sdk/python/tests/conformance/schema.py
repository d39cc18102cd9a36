"""Validates the part of JSON Schema that schema.json uses; an unknown keyword is a problem too."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Schema = Any
"""True, False, or an object of keywords."""


@dataclass(frozen=True)
class _Asked:
    value: Any
    at: str
    beside: dict[str, Any]
    """The schema that contains the keyword."""
    definitions: dict[str, Schema]

    def fields(self) -> list[tuple[str, Any]]:
        return list(self.value.items()) if isinstance(self.value, dict) else []

    def inner(self, value: Any, schema: Schema, at: str = "") -> Iterator[str]:
        return problems(value, schema, self.definitions, self.at + at)

    def unless(self, holds: bool, why: str) -> Iterator[str]:
        if not holds:
            yield f"{self.at}: {why}"


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names[type(value)]


def _ref(rule: str, asked: _Asked) -> Iterator[str]:
    return asked.inner(asked.value, asked.definitions[rule.removeprefix("#/$defs/")])


def _type(rule: str | list[str], asked: _Asked) -> Iterator[str]:
    allowed = [rule] if isinstance(rule, str) else rule
    return asked.unless(_type_of(asked.value) in allowed, f"is {_type_of(asked.value)}")


def _pattern(rule: str, asked: _Asked) -> Iterator[str]:
    holds = isinstance(asked.value, str) and re.search(rule, asked.value) is not None
    return asked.unless(holds, "does not match")


def _min_items(rule: int, asked: _Asked) -> Iterator[str]:
    return asked.unless(isinstance(asked.value, list) and len(asked.value) >= rule, "is too short")


def _items(rule: Schema, asked: _Asked) -> Iterator[str]:
    for i, item in enumerate(asked.value if isinstance(asked.value, list) else []):
        yield from asked.inner(item, rule, f"[{i}]")


def _required(rule: list[str], asked: _Asked) -> Iterator[str]:
    for name in rule:
        yield from asked.unless(name in dict(asked.fields()), f"{name} is missing")


def _properties(rule: dict[str, Schema], asked: _Asked) -> Iterator[str]:
    for name, value in asked.fields():
        if name in rule:
            yield from asked.inner(value, rule[name], f".{name}")


def _additional(rule: Schema, asked: _Asked) -> Iterator[str]:
    for name, value in asked.fields():
        if name not in asked.beside.get("properties", {}):
            yield from asked.inner(value, rule, f".{name}")


def _all_of(rule: list[Schema], asked: _Asked) -> Iterator[str]:
    for inner in rule:
        yield from asked.inner(asked.value, inner)


def _if(rule: Schema, asked: _Asked) -> Iterator[str]:
    holds = not list(asked.inner(asked.value, rule))
    return asked.inner(asked.value, asked.beside.get("then" if holds else "else", True))


_KEYWORDS: dict[str, Callable[[Any, _Asked], Iterator[str]]] = {
    "$ref": _ref,
    "type": _type,
    "enum": lambda rule, asked: asked.unless(asked.value in rule, "is none of the words"),
    "const": lambda rule, asked: asked.unless(asked.value == rule, f"is not {rule}"),
    "pattern": _pattern,
    "minItems": _min_items,
    "items": _items,
    "required": _required,
    "properties": _properties,
    "additionalProperties": _additional,
    "allOf": _all_of,
    "if": _if,
}
_WITHOUT_RULE = {"then", "else", "$schema", "title", "description", "$defs"}


def problems(value: Any, schema: Schema, definitions: dict[str, Schema], at: str) -> Iterator[str]:
    """Returns a sentence for each problem, with its place."""
    if schema is True:
        return
    if schema is False:
        yield f"{at}: must not be there"
        return
    for keyword, rule in schema.items():
        if keyword in _WITHOUT_RULE:
            continue
        judge = _KEYWORDS.get(keyword)
        if judge is None:
            yield f"{at}: the schema has the unknown keyword {keyword}"
            continue
        yield from judge(rule, _Asked(value, at, schema, definitions))
