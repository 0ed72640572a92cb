"""The waits that the last settle named: each must be waited for again, and its deadline stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from durable.model.history import is_start
from durable.model.limits import WAITS_NAMED
from durable.model.location import digest, lies_within
from durable.model.run import RETRIED, Wait

if TYPE_CHECKING:
    from durable.model.entry import Entry

WAITS = frozenset({"sleep", "wait", "update", "call", "child", "callback", "webhook", "review", "entity"})
"""Kinds of entries that may have ended a wait for a moment or a message."""

Order = tuple[int, int]


class NamedWait(Protocol):
    """An operation that the run waits for."""

    kind: ClassVar[Any]
    location: str
    deadline: float | None
    journal: Any

    @property
    def seq(self) -> int: ...
    @property
    def branches(self) -> str | None: ...


def name_waits(waiting: Iterable[NamedWait], at_most: int = WAITS_NAMED) -> tuple[tuple[Wait, ...], str | None]:
    """What a settle writes of the operations that the run waits for: `waits`, up to so many, and `waits_digest`."""
    operations = sorted(waiting, key=lambda operation: operation.seq)
    named, further = operations[:at_most], operations[at_most:]
    waits = tuple(Wait(digest=_digest_of(op), deadline=op.deadline) for op in named)
    if not further:
        return waits, None
    digests = [_digest_of(op) for op in further]
    return waits, str(FurtherWaits(len(further), _combined(digests), further[0].journal.latest))


class FurtherWaits:
    """The waits beyond those that are named one by one: their number, one hash of all, and when the run settled."""

    def __init__(self, count: int, combined: str, settled: Order) -> None:
        self.count = count
        self._combined = combined
        self.settled = settled
        """Order of the last result that had been delivered."""

    @classmethod
    def parse(cls, text: str) -> FurtherWaits:
        """Reads what `str` wrote."""
        count, combined, epoch, n = text.split(".")
        return cls(int(count), combined, (int(epoch), int(n)))

    def __str__(self) -> str:
        return f"{self.count}.{self._combined}.{self.settled[0]}.{self.settled[1]}"

    def are_among(self, digests: Sequence[str]) -> bool:
        """Whether these waits, in the order of their calls, begin with the recorded ones; code may wait for more."""
        return _combined(digests[: self.count]) == self._combined


class SettledWaits:
    """What the run record says of the waits, and which of them the code has come to."""

    def __init__(self, waits: Sequence[Wait], waits_digest: str | None) -> None:
        retry = next((wait for wait in waits if wait.digest.startswith(RETRIED)), None)
        self._retried = None if retry is None else retry.deadline
        self._cut = "" if retry is None else retry.digest.removeprefix(RETRIED).lstrip(":")
        self._deadlines: Mapping[str, float | None] = {
            wait.digest: wait.deadline for wait in waits if wait is not retry
        }
        self._ahead = set(self._deadlines)
        self.further = None if waits_digest is None else FurtherWaits.parse(waits_digest)
        self._excused = False

    def deadline(self, operation: NamedWait, asked: float | None) -> float | None:
        """The deadline of a wait that is awaited now: the recorded one, if the run was suspended on it."""
        wait = _digest_of(operation) if self._ahead else None
        if wait is None or wait not in self._ahead:
            return asked if self._retried is None else self._anew(operation, asked, self._retried)
        self._ahead.discard(wait)
        return self._deadlines[wait]

    def _anew(self, operation: NamedWait, asked: float | None, retried: float) -> float | None:
        """What ended the run at its deadline would end it again; a sleep has been slept."""
        if asked is None or asked > retried or operation.kind == "sleep":
            return asked
        return retried + asked - operation.journal.loop.now

    def outlive_cuts(self, facts: Iterable[Entry]) -> bool:
        """Whether they are starts of an at-most-once step from before a retry: the code may not come to it again."""
        retried = self._retried
        if not self._cut or retried is None:
            return False
        epoch, n = self._cut.split(".")
        return all(is_start(fact) and fact.at <= retried and fact.order >= (int(epoch), int(n)) for fact in facts)

    def remove(self, location: str, kind: str, branches: str | None) -> None:
        """Nobody waits any more for what stood at a location, nor for anything inside of it.

        Of the waits that are not named one by one nobody can tell whether it was among them: they go unchecked.
        """
        wait = _digest(location, kind, branches)
        gone = {w for w in self._ahead if w == wait or lies_within(w, f"{location}/") or lies_within(w, location)}
        self._ahead -= gone
        self.further = None

    def lie_ahead_in(self, prefix: str) -> bool:
        """Whether some wait in this scope has not been come to."""
        return any(not prefix or lies_within(wait, prefix) for wait in self._ahead)

    def left(self, recorded: Iterable[Entry], is_over: Callable[[str], bool]) -> bool:
        """Whether a named wait was not come to.

        One is excused if a turn that died has recorded its result, or if it lies in an iteration that is over.
        """
        if self._ahead and not self._excused:
            self._excused = True
            self._ahead -= {_digest_of(entry) for entry in recorded if entry.kind in WAITS}
            self._ahead = {wait for wait in self._ahead if not is_over(wait)}
        return bool(self._ahead)

    def unnamed(self, operations: Iterable[NamedWait]) -> list[str]:
        """Digests of those operations that are not named one by one, in the order of their calls."""
        ordered = sorted(operations, key=lambda operation: operation.seq)
        digests = map(_digest_of, ordered)
        return [wait for wait in digests if wait not in self._deadlines]


def _digest_of(wait: NamedWait | Entry) -> str:
    """Stands for a wait, and for the branches beside it: those of a join or race cannot change while the run waits."""
    return _digest(wait.location, wait.kind, wait.branches)


def _digest(location: str, kind: str, branches: str | None) -> str:
    return digest(location, kind if branches is None else f"{kind} {branches}")


def _combined(digests: Sequence[str]) -> str:
    return f"{len(digests)}-{blake2b(' '.join(digests).encode(), digest_size=6).hexdigest()}"
