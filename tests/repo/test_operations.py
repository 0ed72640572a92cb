"""Every operation that workflow code can call is documented under a heading of its own, explained, and shown at work."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from durable import Context, Mailbox, Updates
from durable.pending import PENDING
from tests.repo.tree import ROOT

SHARED = {"__init__", "arguments", "blocks", "branches", "functions", "operation", "progress"}
"""Files of durable/ops that hold what operations have in common."""

FACTS = {"entity_key", "run", "run_id", "log", "random", "uuid", "now", "today", "mailbox", "updates"}
"""What the context tells without an operation."""


def operations() -> list[str]:
    """As an author writes them: `ctx.step`, `ctx.mailbox.next`."""
    doors = {"ctx": Context, "ctx.mailbox": Mailbox, "ctx.updates": Updates}
    names = [f"{door}.{name}" for door, cls in doors.items() for name in dir(cls) if not name.startswith("_")]
    return sorted(name for name in names if name not in PENDING and name.rpartition(".")[2] not in FACTS)


def test_there_are_operations() -> None:
    assert {"ctx.step", "ctx.sleep", "ctx.mailbox.next", "ctx.updates.next"} <= set(operations())


@pytest.mark.parametrize("operation", operations())
def test_it_has_a_heading_in_the_docs(operation: str) -> None:
    headings = [
        line
        for page in (ROOT / "docs").glob("*.md")
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("#")
    ]
    assert any(f"`{operation}`" in heading for heading in headings), (
        f"no page of docs/ has a heading with `{operation}`"
    )


@pytest.mark.parametrize("operation", operations())
def test_a_scenario_shows_it_at_work(operation: str) -> None:
    call = re.compile(rf"\b{re.escape(operation)}\(")
    scenarios = (ROOT / "tests" / "scenarios").glob("test_*.py")
    assert any(call.search(path.read_text(encoding="utf-8")) for path in scenarios), f"no scenario calls {operation}"


@pytest.mark.parametrize("operation", operations())
def test_its_docstring_says_what_the_author_observes(operation: str) -> None:
    door, _, name = operation.rpartition(".")
    cls = {"ctx": Context, "ctx.mailbox": Mailbox, "ctx.updates": Updates}[door]
    assert inspect.getdoc(getattr(cls, name)), f"{operation} has no docstring"


@pytest.mark.parametrize(
    "path", sorted(p for p in (ROOT / "durable" / "ops").glob("*.py") if p.stem not in SHARED), ids=lambda p: p.stem
)
def test_its_file_opens_with_a_state_table(path: Path) -> None:
    docstring = path.read_text(encoding="utf-8").split('"""')[1]
    assert "\n|" in docstring, f"{path} does not open with a table of its operation's states"
