"""What is declared and cannot be performed yet: the one list, from which a name goes when its operation lands."""

from __future__ import annotations

from typing import Final, NoReturn

from durable.errors import NotAvailable

PENDING: Final = frozenset({
    # registration
    "app.schedule",
    # clients
    "client.start(delay=...)", 'client.start(on_conflict="replace-terminal")',
    "client.pause", "client.unpause", "client.rerun_from",
    "client.fork",
})  # fmt: skip
"""Names as an author writes them."""


def not_available(operation: str) -> NoReturn:
    """Refuses an operation of the list."""
    assert operation in PENDING, f"{operation} is not in the list of what is missing"
    raise NotAvailable(operation)
