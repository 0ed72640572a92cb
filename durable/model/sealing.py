"""Which entries still count once a loop has recorded progress, or its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from durable.model.entry import Entry


def seal(entries: list[Entry]) -> tuple[Mapping[str, int], frozenset[str], list[Entry]]:
    """Drops what a loop's result or its latest progress replaces.

    Returns the iteration at which each open loop goes on, the loops that are over, and the entries that are left.
    State passes between iterations through the loop's state alone, so past ones need not be executed again.
    """
    over = frozenset(entry.location for entry in entries if entry.kind == "loop" and not entry.mark)
    latest: dict[str, int] = {}
    for entry in entries:
        if entry.mark.startswith("~"):
            latest[entry.location] = max(latest.get(entry.location, 0), int(entry.mark[1:]))
    if not over and not latest:
        return {}, over, entries
    counts = _counts(over, latest)
    return {loop: at for loop, at in latest.items() if loop not in over}, over, [e for e in entries if counts(e)]


def _counts(over: frozenset[str], latest: Mapping[str, int]) -> Callable[[Entry], bool]:
    def counts(entry: Entry) -> bool:
        location = entry.location
        if entry.mark.startswith("!"):
            return True  # a rollback undoes past iterations too, and must know which it has undone
        if entry.mark.startswith("~") and (location in over or int(entry.mark[1:]) < latest[location]):
            return False
        bracket = location.find("[")
        while bracket >= 0:
            loop = location[:bracket]
            if loop in over:
                return False
            current = latest.get(loop)
            if current is not None and int(location[bracket + 1 : location.index("]", bracket)]) < current:
                return False
            bracket = location.find("[", bracket + 1)
        return True

    return counts
