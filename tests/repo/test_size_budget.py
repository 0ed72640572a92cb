"""No file grows past 350 lines and no function past 50, unless the exceptions table says why."""

from dataclasses import dataclass

import pytest

from tests.repo.tree import ROOT, files_with, functions_of, text_of

LINES_A_FILE = 350
LINES_A_FUNCTION = 50
BUDGETED = ("durable", "handlers")


@dataclass(frozen=True, slots=True)
class Exemption:
    place: str
    allowed: int
    reason: str


def exemptions() -> dict[str, Exemption]:
    table = (ROOT / "tests/repo/size_exceptions.txt").read_text(encoding="utf-8")
    rows = [line for line in table.splitlines() if line and not line.startswith("#")]
    found: dict[str, Exemption] = {}
    for row in rows:
        place, allowed, reason = (cell.strip() for cell in row.split("|", 2))
        found[place] = Exemption(place, int(allowed), reason)
    return found


def sizes() -> dict[str, int]:
    """Lines of every budgeted file and function, by place."""
    found: dict[str, int] = {}
    for path in files_with(".py", *BUDGETED):
        found[path.as_posix()] = len(text_of(path).splitlines())
        for function in functions_of(path):
            found[function.place] = function.lines
    return found


def budget_of(place: str) -> int:
    return LINES_A_FUNCTION if "::" in place else LINES_A_FILE


def test_files_and_functions_keep_to_the_size_budget() -> None:
    exempt = exemptions()
    too_long = [
        f"{place}: {lines} lines, {allowed} allowed"
        for place, lines in sizes().items()
        if lines > (allowed := exempt[place].allowed if place in exempt else budget_of(place))
    ]
    assert not too_long, (
        "Split these, or give each a line with its reason in tests/repo/size_exceptions.txt:\n" + "\n".join(too_long)
    )


@pytest.mark.parametrize("exemption", exemptions().values(), ids=lambda exemption: exemption.place)
def test_an_exemption_from_the_size_budget_has_a_reason_and_is_needed(exemption: Exemption) -> None:
    lines = sizes().get(exemption.place)
    assert lines is not None, f"{exemption.place} no longer exists: remove its exemption."
    assert lines > budget_of(exemption.place), f"{exemption.place} has {lines} lines: remove its exemption."
    assert exemption.reason, f"{exemption.place} is exempt without a reason."
