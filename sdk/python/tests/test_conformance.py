from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from conformance.calls import to_python
from conformance.cases import Case, check_cases, read_cases, read_file
from conformance.drivers import DRIVERS
from conformance.match import difference, substitute
from conformance.run_case import run_case
from conformance.servers import Servers

CASES = read_cases()


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(
    case: Case, driver: str, servers: Servers, record_property: Callable[[str, object], None]
) -> None:
    record_property("conformance", case["name"])
    run_case(case, servers, DRIVERS[driver]())


@pytest.mark.parametrize(
    "place",
    [
        lambda file: file,
        lambda file: file["cases"][0],
        lambda file: file["cases"][0]["steps"][0],
        lambda file: file["cases"][0]["steps"][0]["expect"],
    ],
    ids=["file", "case", "step", "expectation"],
)
def test_an_unknown_key_fails_the_run(place: Callable[[Any], dict[str, object]]) -> None:
    file = copy.deepcopy(read_file("cases.json"))
    place(file)["surprise"] = 1
    with pytest.raises(ValueError, match="surprise"):
        check_cases(file)


def test_unknown_words_fail_the_run() -> None:
    with pytest.raises(KeyError):
        to_python({"surprise": 1})
    with pytest.raises(KeyError):
        substitute("${surprise}", {})
    with pytest.raises(ValueError, match="surprise"):
        difference("a", {"$surprise": 1})


def test_the_comparison_tells_booleans_from_numbers() -> None:
    assert difference(True, 1) is not None
    assert difference({"a": 1, "b": 2}, {"a": 1}) is None
    assert difference({"a": 1, "b": 2}, {"a": 1}, exact=True) is not None
