"""Whoever deals with runs from outside, as far as a simulation needs to know them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from durable.ports import Ports
    from durable.testing.simulation.watch import Watch

    Work: TypeAlias = tuple[str, Callable[[Ports], None]]
    """What an invocation of a client does, and what it is called."""


class Outside(Protocol):
    """The clients of one seed."""

    @property
    def moments(self) -> Sequence[float]:
        """When they will do something."""
        ...

    def begin_due(self) -> Iterable[Work]:
        """Does what can be done at once, and gives what an invocation of its own is to do now."""
        ...

    @property
    def has_acted(self) -> bool:
        """Whether they have done anything since this was asked last."""
        ...

    def hurry(self) -> None:
        """What they have planned next comes now."""
        ...

    def is_over(self, watch: Watch) -> bool:
        """Whether the seed may end, once nothing is under way."""
        ...

    def when_quiet(self, watch: Watch) -> bool:
        """Called when nothing will happen by itself: whether they will do something more."""
        ...
