"""A version: pins which branch of the code this place of the run has taken.

| history                                             | answer    | recorded                                   |
|-----------------------------------------------------|-----------|--------------------------------------------|
| the version's entry                                 | its value | -                                          |
| none, and records or waits in its scope lie ahead   | 1         | nothing: older code has gone on from here  |
| none, and nothing of its scope lies ahead           | `latest`  | before anything that comes after           |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable import codec
from durable.ops.operation import Host, KnownOperation

if TYPE_CHECKING:
    from durable.model.entry import Entry


class VersionOperation(KnownOperation):
    """`ctx.get_version("name", 3)`: `answer` is there at once, nothing is awaited."""

    __slots__ = ("answer",)
    kind = "version"
    answered = True

    def __init__(self, host: Host, name: str, latest: int) -> None:
        if latest < 1:
            raise ValueError(f"ctx.get_version({name!r}, {latest}): versions count from 1")
        super().__init__(host, f"version:{name}", "version")
        del self.scope.unawaited[self.location]
        self.text = None
        self.answer = self._answer(latest)

    def decode(self, entry: Entry) -> int:
        return int(self.read(entry.value, int))

    def _answer(self, latest: int) -> int:
        record = self.record
        if record is not None and record.entry is not None:
            return self.decode(record.entry)
        if self.journal.has_passed(self.scope):
            return 1
        self.text = codec.encode(latest, int)
        self.journal.park(self)
        return latest

    @property
    def awaited(self) -> bool:
        return True

    @property
    def dead(self) -> bool:
        return False
