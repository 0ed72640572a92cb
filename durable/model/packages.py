"""Which functions are the app's own: only those may be called because a record in the table names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


class Packages:
    """Top-level packages: those in which the app and what it registers are defined, and those that the author adds.

    Whoever can write to the table can name any function in it. So `os:system` must not be called for that, and no
    module imported.
    """

    def __init__(self, more: Iterable[str]) -> None:
        self._roots = {_root(name) for name in more}

    def add(self, defined: Any) -> None:
        """Counts the package of a function or class among the app's own."""
        self._roots.add(_root(defined.__module__))

    def own(self, module: str) -> bool:
        """Whether a module is in one of them."""
        return module != "" and _root(module) in self._roots

    def __str__(self) -> str:
        return ", ".join(sorted(self._roots)) or "none"


def _root(module: str) -> str:
    return module.partition(".")[0]
