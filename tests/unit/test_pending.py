"""The list of what is missing is the truth: each name on it is refused somewhere, and nothing else is refused."""

import re

from durable.pending import PENDING
from tests.repo.tree import ROOT

REFUSAL = re.compile(r"(?:not_available|_missing)\(\s*(?:'([^']+)'|\"([^\"]+)\")\s*\)")


def test_the_list_names_exactly_what_is_refused() -> None:
    refused = {
        single or double
        for path in (ROOT / "durable").rglob("*.py")
        for single, double in REFUSAL.findall(path.read_text(encoding="utf-8"))
    }
    assert refused == PENDING
