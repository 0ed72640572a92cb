"""Time, chance and facts about the run: what code may ask and gets the same answer on every replay."""

from __future__ import annotations

from datetime import UTC, date, datetime
from logging import Logger
from random import Random  # noqa: TID251 - the type of ctx.random, which is seeded
from typing import TYPE_CHECKING
from uuid import UUID

from durable.context.chance import Draws, ScopedRandom
from durable.context.log import RunLogger
from durable.context.part import Op, Part
from durable.model.duration import Duration, seconds
from durable.model.ids import check_name
from durable.model.limits import SLEEP_SECONDS
from durable.ops.sleep import SleepOperation, SleepUntilOperation

if TYPE_CHECKING:
    from durable.execution import Execution, RunInfo


class Moments(Part):
    """The part of the context that sleeps and tells."""

    def __init__(self, execution: Execution) -> None:
        super().__init__(execution)
        self._draws = Draws(execution)
        self._random: ScopedRandom | None = None
        self._log: RunLogger | None = None

    def sleep(self, duration: Duration, /, *, name: str | None = None) -> Op[None]:
        """Returns after the duration: seconds, a timedelta, or a text such as "5m" or "3 days".

        A sleep of zero or less does not suspend the run. A run that has gone to sleep keeps its deadline, even if the
        code asks for another one later.
        """
        if isinstance(duration, datetime):
            raise TypeError("ctx.sleep() takes a duration, not a datetime: for a moment use ctx.sleep_until")
        return SleepOperation(self._execution, seconds(duration, "the duration of ctx.sleep"), _named(name))

    def sleep_until(self, when: datetime, /, *, name: str | None = None) -> Op[None]:
        """Returns at the moment, which must have a time zone; at once if it has passed."""
        moment = self._moment(when)
        return SleepUntilOperation(self._execution, moment, _named(name))

    def now(self) -> datetime:
        """The time in UTC as of the latest result, the same on every replay; it never goes back."""
        return datetime.fromtimestamp(self._execution.time, UTC)

    def today(self) -> date:
        """The date in UTC of `now()`."""
        return self.now().date()

    def uuid(self) -> UUID:
        """A new UUID, the same on every replay."""
        return self._draws.uuid()

    @property
    def random(self) -> Random:
        """Random numbers, the same on every replay; every branch and iteration has a stream of its own."""
        if self._random is None:
            self._random = ScopedRandom(self._draws)
        return self._random

    @property
    def log(self) -> Logger:
        """A logger that is silent while code is replayed; its name is `durable.workflow.<workflow>`."""
        if self._log is None:
            self._log = RunLogger(self._execution)
        return self._log

    @property
    def run(self) -> RunInfo:
        """What this run is: id, workflow, version, when it started, tags."""
        return self._execution.info

    @property
    def run_id(self) -> str:
        """The id of this run."""
        return self._execution.run_id

    def _moment(self, when: object) -> float:
        if not isinstance(when, datetime):
            raise TypeError(f"ctx.sleep_until() takes a datetime with a time zone, not {type(when).__name__}")
        if when.tzinfo is None or when.utcoffset() is None:
            raise ValueError(
                f"ctx.sleep_until() got {when.isoformat()}, which has no time zone: "
                "say which, for example datetime(..., tzinfo=UTC) or tzinfo=ZoneInfo(...)"
            )
        moment = when.timestamp()
        if moment - self._execution.time > SLEEP_SECONDS:
            raise ValueError(f"ctx.sleep_until() got {when.isoformat()}; the limit is ten years from now")
        return moment


def _named(name: str | None) -> str | None:
    return None if name is None else check_name("name of a sleep", name)
