from __future__ import annotations

from collections.abc import Callable

import pytest

from conformance.calls import to_python
from conformance.drivers import DRIVERS
from conformance.run_case import run_case
from conformance.servers import Servers, case_names


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("case", case_names())
def test_case(
    case: str, driver: str, servers: Servers, record_property: Callable[[str, object], None]
) -> None:
    record_property("conformance", case)
    run_case(case, servers, DRIVERS[driver]())


def test_unknown_words_fail_the_run() -> None:
    with pytest.raises(KeyError):
        to_python({"surprise": 1})
