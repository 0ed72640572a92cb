"""A sleep: nothing happens until a moment has come.

| state   | history at the location | what happens                                             |
|---------|-------------------------|----------------------------------------------------------|
| new     | nothing                 | its deadline is the time at the call of await + duration |
| asleep  | nothing; the settle names it with its deadline | that deadline stands              |
| over    | an entry without value  | returns None                                             |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable.ops.operation import Host, WaitOperation, until

if TYPE_CHECKING:
    from durable.model.entry import Entry


class SleepOperation(WaitOperation):
    """`await ctx.sleep("5m")`."""

    __slots__ = ("_seconds",)
    kind = "sleep"

    def __init__(self, host: Host, seconds: float, name: str | None = None) -> None:
        self._seconds = seconds
        super().__init__(host, name, "sleep")

    def asked_deadline(self) -> float:
        self.immediate = self._seconds <= 0
        return self.journal.loop.now + max(0.0, self._seconds)

    def decode(self, entry: Entry) -> None:
        pass

    def describe(self) -> str:
        return f"{_title(self.location, 'sleep')}{until(self.deadline)}"


class SleepUntilOperation(WaitOperation):
    """`await ctx.sleep_until(moment)`; a moment in the past is no sleep."""

    __slots__ = ("_moment",)
    kind = "sleep"

    def __init__(self, host: Host, moment: float, name: str | None = None) -> None:
        self._moment = moment
        super().__init__(host, name, "sleep")

    def asked_deadline(self) -> float:
        self.immediate = self._moment <= self.journal.loop.now
        return self._moment

    def decode(self, entry: Entry) -> None:
        pass

    def describe(self) -> str:
        return f"{_title(self.location, 'sleep')}{until(self.deadline)}"


def _title(location: str, derived: str) -> str:
    last = location.rpartition("/")[2]
    return "sleep" if last.partition("#")[0] == derived else f'sleep "{last}"'
