"""Whatever call an invocation dies or stands still at: every scenario workflow ends as it does without trouble."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from durable.model.ids import PREFIX_OF_ENTITIES
from tests.crash.recorded import Recorded
from tests.histories.catalogue import scenarios

TABLE = Path(__file__).parent / "every_scenario.txt"


@dataclass(frozen=True, slots=True)
class Treatment:
    """A scenario workflow that the matrix treats in another way."""

    what: str
    reason: str


def exceptions() -> dict[str, Treatment]:
    rows = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    cells = [[cell.strip() for cell in row.split("|", 2)] for row in rows]
    return {place: Treatment(what, reason) for place, what, reason in cells}


EXCEPTIONS = exceptions()
KNOWN = list(scenarios())


def cases() -> Iterator[Any]:
    """Those with a history say by it what they were given; entities are driven by the workflows that call them."""
    for scenario in KNOWN:
        exception = EXCEPTIONS.get(str(scenario))
        what = "" if exception is None else exception.what
        if what == "never" or scenario.workflow.startswith(PREFIX_OF_ENTITIES) or not scenario.file.exists():
            continue
        recorded = Recorded(scenario)
        marks = [pytest.mark.soak] if what == "soak" else []
        for pace in recorded.paces:
            yield pytest.param(recorded, pace, what == "otherwise", id=f"{scenario} {pace}", marks=marks)


@pytest.mark.parametrize(("recorded", "pace", "otherwise"), list(cases()))
def test_it_ends_as_without_trouble(recorded: Recorded, pace: Any, otherwise: bool) -> None:
    recorded.matrix(pace, may_differ=otherwise)


def test_an_exception_has_a_reason_and_is_one() -> None:
    """Those without a history have theirs in `tests/histories/without.txt`."""
    assert all(one.reason and one.what in {"never", "otherwise", "soak"} for one in EXCEPTIONS.values())
    assert EXCEPTIONS.keys() <= {str(one) for one in KNOWN}
