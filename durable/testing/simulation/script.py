"""What clients do in a seed in which runs work with others: acts at certain moments, each tried until it has succeeded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from durable.client import Client
from durable.errors import RunEnded, RunNotFound, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from durable.app import App
    from durable.ports import Ports
    from durable.testing.simulation.outside import Work
    from durable.testing.simulation.watch import Watch

AGAIN: Final = 20.0
"""Seconds after which a client tries again what has not succeeded: it may have died on the way."""
TRIES: Final = 40


@dataclass(slots=True, eq=False)
class Act:
    """Something that a client does; doing it twice must be doing it once."""

    moment: float
    """Seconds after the start."""
    name: str
    perform: Callable[[Client], None]
    tries: int = 0


class Script:
    """The acts of one seed, and those that come last, once all is quiet."""

    def __init__(
        self, app: Callable[[], App[Any]], now: Callable[[], float], acts: Sequence[Act], last: Sequence[Act]
    ) -> None:
        self._app = app
        self._now = now
        self._start = now()
        self._planned = sorted(acts, key=lambda act: act.moment)
        self._last = list(last)
        self._acted = True
        self._ends = False

    @property
    def moments(self) -> Sequence[float]:
        return [self._start + act.moment for act in self._planned]

    @property
    def has_acted(self) -> bool:
        acted, self._acted = self._acted, False
        return acted

    def hurry(self) -> None:
        if self._planned and self._planned[0].tries == 0 and not self._ends:
            self._planned[0].moment = self._now() - self._start

    def begin_due(self) -> Sequence[Work]:
        now = self._now() - self._start
        due = [act for act in self._planned if act.moment <= now]
        for act in due:
            act.moment, act.tries = now + AGAIN, act.tries + 1
            self._acted = True
            if act.tries > TRIES:
                self._planned.remove(act)
        return [(act.name, lambda ports, act=act: self._perform(act, ports)) for act in due]

    def _perform(self, act: Act, ports: Ports) -> None:
        try:
            act.perform(Client(self._app(), ports))
        except RunEnded:
            pass  # it is too late for it
        except (RunNotFound, TimeoutError, StoreUnavailable):
            return  # not yet
        if act in self._planned:
            self._planned.remove(act)

    def is_over(self, watch: Watch) -> bool:  # noqa: ARG002 - in such a seed only quiet is the end
        return False

    def when_quiet(self, watch: Watch) -> bool:  # noqa: ARG002 - see above
        self._ends = True
        now = self._now() - self._start
        for act in self._last:
            act.moment += now
        self._planned += self._last
        self._last = []
        return bool(self._planned)
