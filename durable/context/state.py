"""What a run shows, what versions of its code it has passed, and what is kept elsewhere."""

# ruff: noqa: ARG002 - what is declared for later ignores its arguments

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, overload

from typing_extensions import TypeVar

from durable.channels import StateKey
from durable.context.part import Op, Part
from durable.model.ids import check_name
from durable.ops.version import VersionOperation
from durable.options import count
from durable.values import Blob

T = TypeVar("T")


class States(Part):
    """The part of the context that publishes, marks and keeps. What is not awaited here never waits and never fails."""

    @overload
    def set_state(self, key: StateKey[T], value: T, /) -> None: ...
    @overload
    def set_state(self, key: str, value: object, /) -> None: ...
    def set_state(self, key: Any, value: Any, /) -> None:
        """Publishes a value for others to read."""
        self._missing("ctx.set_state")

    def set_attributes(self, **attributes: str | float | bool | datetime) -> None:
        """Sets attributes by which runs are searched."""
        self._missing("ctx.set_attributes")

    def add_tags(self, *tags: str) -> None:
        """Adds tags by which runs are listed."""
        self._missing("ctx.add_tags")

    def get_version(self, name: str, latest: int, /) -> int:
        """The version of the code at this place: the latest, or 1 in a run that had passed it under older code."""
        latest = count("ctx.get_version(latest)", latest, minimum=1)
        return VersionOperation(self._execution, check_name("name of a version", name), latest).answer

    def patched(self, name: str, /) -> bool:
        """Whether this run takes the new code at this place."""
        return self.get_version(name, 2) > 1

    def removed(self, name: str, kind: str, /) -> None:
        """Accepts the record of an operation whose code was deleted."""
        self._missing("ctx.removed")

    def rollback_checkpoint(self, name: str, /) -> Op[None]:
        """A rollback does not go back beyond this place."""
        self._missing("ctx.rollback_checkpoint")

    def offload(self, name: str, fn: Callable[[], T], /) -> Op[Blob[T]]:
        """Stores a large value apart and gives a reference to it."""
        self._missing("ctx.offload")

    def stream(self, name: str, /) -> Any:
        """Chunks that clients can follow while the run goes on."""
        self._missing("ctx.stream")
