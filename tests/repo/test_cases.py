"""The list of cases: every id once, with tests that exist or a reason, and every test of a case is in it."""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from tests.repo.tree import ROOT

CASES = ROOT / "tests" / "cases"
KNOWN = {
    "TMR": 11, "MSG": 15, "RTY": 12, "RPL": 13, "CON": 13, "PAY": 11, "CAN": 9, "CHD": 8, "SCH": 10, "VER": 7, "SCL": 8,
    "OBS": 8, "LOC": 7, "SEC": 7, "OPS": 8,
}  # fmt: skip
IDS = [f"{kind}-{number:02}" for kind, count in KNOWN.items() for number in range(1, count + 1)]
ROW = re.compile(r"^\| ([A-Z]{3}-\d\d) \| ([^|]+) \| ([^|]+) \|", re.MULTILINE)
ROWS = ROW.findall((CASES / "README.md").read_text(encoding="utf-8"))


def all_tests() -> Iterator[str]:
    for path in CASES.glob("test_*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield node.name


def ids_in(test: str) -> list[str]:
    return [f"{kind}-{number}" for kind, number in re.findall(r"_([A-Z]{3})_(\d\d)", test)]


def test_every_case_is_listed_once() -> None:
    assert [case for case, _, _ in ROWS] == IDS


def test_every_case_has_a_test_that_exists_or_says_why_there_is_none() -> None:
    existing = set(all_tests())
    for case, trouble, told in ROWS:
        assert trouble.strip().endswith(".")
        named = re.findall(r"`(test_\w+)`", told)
        assert named or re.match(r"not (applicable|in this version)", told.strip()), case
        assert set(named) <= existing, f"{case}: {set(named) - existing}"
        assert all(case in ids_in(test) for test in named), case


def test_every_test_of_the_folder_carries_ids_and_is_listed_under_each() -> None:
    listed = Counter((case, test) for case, _, told in ROWS for test in re.findall(r"`(test_\w+)`", told))
    wanted = Counter((case, test) for test in all_tests() for case in ids_in(test))
    assert all(ids_in(test) for test in all_tests())
    assert listed == wanted
