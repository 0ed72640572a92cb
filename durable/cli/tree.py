"""A history as a tree: operations under the joins, races, maps, loops and blocks that they stand in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

Path: TypeAlias = tuple[str, ...]

AT_ONCE: Final = frozenset({"version", "checkpoint", "cancel"})
"""Kinds of entries that tell of a moment, not of something that takes time."""


@dataclass(frozen=True, slots=True)
class Timed:
    """An entry with its place and its time."""

    entry: Mapping[str, Any]
    path: Path
    started: datetime
    recorded: datetime


@dataclass(slots=True)
class Node:
    """A place in the tree: what was recorded there itself, and what stands inside, in the order of their first record."""

    name: str = ""
    recorded: bool = False
    """Whether the history has an entry for this very place."""
    entries: list[Timed] = field(default_factory=list[Timed])
    children: dict[str, Node] = field(default_factory=dict[str, "Node"])

    @property
    def parallel(self) -> bool:
        """Whether it looks like a join, race or map: nothing was recorded in it but by its branches."""
        inside = self.children.values()
        return bool(inside) and not any(child.recorded or child.name.startswith("[") for child in inside)

    def all_entries(self) -> Iterator[Timed]:
        """Everything that was recorded here and inside."""
        yield from self.entries
        for child in self.children.values():
            yield from child.all_entries()


def grown(entries: Sequence[Mapping[str, Any]], began: datetime) -> tuple[Node, list[Timed]]:
    """The tree of a history, whose root has no name, and the history itself; both in order of record."""
    root = Node()
    places = [(entry, path_of(entry)) for entry in entries]
    nodes = [_place(root, path) for _, path in places]
    for node in nodes:
        node.recorded = True
    beginnings = _Beginnings(root, began)
    history = [beginnings.timed(entry, path) for entry, path in places]
    for node, timed in zip(nodes, history, strict=True):
        node.entries.append(timed)
    return root, history


def path_of(entry: Mapping[str, Any]) -> Path:
    """The names on the way to the entry: `poll[3]/fetch` is `poll`, `[3]`, `fetch`. An undo stands outside of all."""
    location: str = entry["location"]
    if entry.get("mark", "").startswith("!"):
        return (f"!{location}",)
    path: list[str] = []
    for part in location.split("/"):
        name, bracket, iteration = part.partition("[")
        path.append(name)
        if bracket:
            path.append(f"[{iteration}")
    return tuple(path)


def readable(location: str) -> str:
    """The location as people wrote its names: what its separators would hide is escaped in it."""
    return unquote(location)


def _place(root: Node, path: Path) -> Node:
    node = root
    for name in path:
        node = node.children.setdefault(name, Node(name))
    return node


class _Beginnings:
    """When operations began that do not say so themselves: sleeps and waits.

    As far as we know when what was recorded before them in their scope was, or when the scope began: for the branches of
    a join that is the same moment.
    """

    def __init__(self, root: Node, began: datetime) -> None:
        self._root = root
        self._last: dict[Path, datetime] = {}
        self._scopes: dict[Path, datetime] = {(): began}

    def timed(self, entry: Mapping[str, Any], path: Path) -> Timed:
        scopes = [path[:length] for length in range(len(path))]
        for scope in scopes[1:]:
            if scope not in self._scopes:
                self._scopes[scope] = self._now(scope[:-1])
        recorded = datetime.fromisoformat(entry["recorded_at"])
        if entry.get("started_at"):
            started = datetime.fromisoformat(entry["started_at"])
        else:
            started = recorded if entry["kind"] in AT_ONCE else self._now(scopes[-1])
        node = self._root
        for scope in scopes:
            node = node.children[scope[-1]] if scope else node
            if not scope or not node.parallel:
                self._last[scope] = recorded
        return Timed(entry, path, min(started, recorded), recorded)

    def _now(self, scope: Path) -> datetime:
        return self._last.get(scope) or self._scopes[scope]
