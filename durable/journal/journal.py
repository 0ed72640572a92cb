"""One run's history in memory: what is recorded where, which code has claimed it, and what comes next."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, final

from durable.errors import Diverged, Misuse, OperationInsideStep, RunSuspended
from durable.journal.scopes import Scope, current_scope
from durable.journal.waits import FurtherWaits, Order, SettledWaits
from durable.loop import WorkflowLoop, dropped_generator, running_loop
from durable.model.location import digest, lies_within
from durable.model.run import Wait
from durable.model.sealing import seal

if TYPE_CHECKING:
    from durable.model.entry import Entry, Kind

FINDS_NO_END: Final = 100
"""Operations that an unwinding task may try before they wait for ever instead of raising once more."""

IMMEDIATE: Final = frozenset({"version", "removed", "update"})
"""Kinds whose value is answered when they are called: they have no place in the order of delivery."""


class Claimant(Protocol):
    """An operation as the journal sees it."""

    kind: ClassVar[Kind]
    location: str
    fn: str | None
    scope: Scope
    may_be_late: ClassVar[bool]
    waits: ClassVar[bool]

    @property
    def key(self) -> str: ...
    @property
    def awaited(self) -> bool: ...
    @property
    def dead(self) -> bool: ...


class Record:
    """What the history holds at one key: a result, facts about attempts at it, or both."""

    __slots__ = ("entry", "facts", "operation")

    def __init__(self) -> None:
        self.entry: Entry | None = None
        self.facts: list[Entry] = []
        self.operation: Claimant | None = None

    @property
    def any(self) -> Entry:
        """Some entry, for its kind and function."""
        return self.entry or self.facts[0]


@final
class Checkpoint:
    """Stands in the order of results where the run had settled."""


CHECKPOINT: Final = Checkpoint()


@final
class Cancellation:
    """Stands in the order of results where the run was cancelled."""

    __slots__ = ("entry",)

    def __init__(self, entry: Entry) -> None:
        self.entry = entry


class Journal:
    """The records of one run, claimed by the operations of the code as it is replayed."""

    def __init__(self, title: str, entries: Iterable[Entry], waits: Sequence[Wait], waits_digest: str | None) -> None:
        self.loop: WorkflowLoop
        self.title = title
        self.waited_for = ""
        """What the run was last seen to wait for, in words; the waits themselves are known by their hashes only."""
        entries = sorted(entries, key=lambda entry: (entry.epoch, entry.n))
        self.progress, self.sealed, entries = seal(entries)
        self.records: dict[str, Record] = defaultdict(Record)
        self.undone: dict[str, int] = {}
        """Locations of steps that a rollback has undone, with the epoch in which."""
        self._before_checkpoint = False
        self.order: list[Record | Cancellation | Checkpoint | None] = []
        """Results in the order of record."""
        for entry in entries:
            self._index(entry)
        self.waits = SettledWaits(waits, waits_digest)
        self._optional = {key for key, r in self.records.items() if not r.entry and self.waits.outlive_cuts(r.facts)}
        self.unclaimed = len(self.records) - len(self._optional)
        self._checkpoint(entries, waits_digest)
        self.order.append(None)  # so that the next record can be looked at without a check for the end
        self.position = 0
        self.parked: dict[str, Any] = {}
        """Operations that were awaited and have no result yet, by key, in the order of awaiting."""
        self.fresh: list[Any] = []
        """Those of them that the engine has not been told of."""
        self.outgoing: list[Any] = []
        """What the code has announced (published values, tags, ...) and the engine has not stored yet."""
        self.created = 0
        self.root = Scope()
        self._live_latest: Order | None = None
        self._sorted: list[str] | None = None
        self._ahead: list[Record] | None = None
        self._removed: list[str] = []

    def _index(self, entry: Entry) -> None:
        mark = entry.mark
        if mark.startswith(("@", "?")):
            self.records[entry.location].facts.append(entry)
        elif mark == "^":
            self.order.append(Cancellation(entry))
        elif not mark.startswith("!"):
            record = self.records[entry.key]
            record.entry = entry
            if entry.kind not in IMMEDIATE:
                self.order.append(record)
        elif mark == "!" and entry.error is None:
            self.undone[entry.location] = entry.epoch

    def _checkpoint(self, entries: list[Entry], waits_digest: str | None) -> None:
        """Marks the place in the order at which the run had settled, if there is something to check just there."""
        if waits_digest is None:
            return
        settled = FurtherWaits.parse(waits_digest).settled
        if any(entry.kind == "loop" and entry.order > settled for entry in entries):
            return  # iterations that were under way are sealed now: their waits will not be come to again
        after = (place for place, record in enumerate(self.order) if isinstance(record, Record | Cancellation))
        place = next((p for p in after if _order_of(self.order[p]) > settled), len(self.order))
        self.order.insert(place, CHECKPOINT)
        self._before_checkpoint = True

    # Claims

    def enter(self, kind: str, name: str) -> Scope:
        """The scope of a call from workflow code; raises when the call comes from somewhere else."""
        loop = self.loop
        if running_loop() is not loop and loop.closing != "suspended":
            raise loop.fail(OperationInsideStep(f'{kind} "{name}"'))
        # Code that swallows everything is closed once more by the garbage collector, outside the loop: the same applies.
        if loop.closing is not None:
            self.refuse_while_closing()
        return current_scope.get(self.root)

    def refuse_while_closing(self) -> None:
        """Raises RunSuspended into clean-up code, unless it has swallowed that too often."""
        loop = self.loop
        if loop.closing == "generator":
            raise dropped_generator()
        loop.suspensions += 1
        if loop.suspensions <= FINDS_NO_END:
            raise RunSuspended

    def explicit(self, scope: Scope, name: str) -> str:
        """The location of a name that the author gave; a repeated one also stops the loop."""
        try:
            return scope.explicit(name)
        except Misuse as misuse:
            self.loop.fail(misuse)
            raise

    def claim(self, operation: Claimant, record: Record) -> None:
        """Notes which operation a record belongs to; stops the loop when it does not fit."""
        recorded = record.any
        if recorded.kind != operation.kind or recorded.fn != operation.fn:
            self.diverge(
                f'at "{operation.location}" the history has {describe(recorded.kind, recorded.fn)}, '
                f"the code has {describe(operation.kind, operation.fn)}"
            )
        elif recorded.branches != operation.scope.branches:
            self.diverge(
                f'"{operation.location}" was recorded inside branches {recorded.branches or "(none)"}, '
                f"the code has {operation.scope.branches or '(none)'}"
            )
        self._count(record)
        record.operation = operation

    def _count(self, record: Record) -> None:
        if record.operation is None and record.any.location not in self._optional:
            self.unclaimed -= 1

    def accept_removed(self, removed: Any) -> None:
        """Gives everything that is recorded at a location, and inside of it, to code that stands for what was deleted."""
        location: str = removed.location
        self._removed.append(location)
        exact = self.records.get(location)
        if exact is not None and exact.any.kind != removed.kind:
            self.diverge(
                f'at "{location}" the history has {describe(exact.any.kind, exact.any.fn)}, '
                f"the code says that a {removed.kind} was removed"
            )
        inside = [record for mark in "/[~" for record in self._records_in(location + mark)]
        for record in inside if exact is None else [exact, *inside]:
            self._count(record)
            record.operation = removed
        self.waits.remove(location, removed.kind, removed.scope.branches)

    def park(self, operation: Any) -> None:
        """Takes an operation that was awaited and has no result in the history."""
        self.parked[operation.key] = operation
        self.fresh.append(operation)

    # What lies ahead

    def has_passed(self, scope: Scope) -> bool:
        """Whether older code has gone on from here: the scope holds records or waits that are not awaited yet."""
        if self._before_checkpoint:
            return True  # all that runs up to there ran before the run settled, and what it answered then is recorded
        self._waits_left()
        if self.waits.lie_ahead_in(scope.prefix):
            return True
        if self.order[self.position] is None and not self.unclaimed:
            return False
        # Not only in this scope: where it is the last thing in a branch or an iteration, what follows lies outside.
        if self._ahead is None:
            self._ahead = list(self.records.values())
        ahead = self._ahead
        while ahead and is_awaited(ahead[-1]):  # what was awaited once stays so: each record is looked at once
            ahead.pop()
        return bool(ahead)

    def _records_in(self, prefix: str) -> list[Record]:
        if self._sorted is None:
            self._sorted = sorted(self.records)
        start = bisect_left(self._sorted, prefix)
        end = bisect_left(self._sorted, prefix[:-1] + chr(ord(prefix[-1]) + 1))
        return [self.records[key] for key in self._sorted[start:end]]

    # The end of replay

    def check_all_claimed(self) -> None:
        """Raises Diverged when the history has something that the code has not asked for."""
        if self.unclaimed:
            raise self.diverged("there are records that the code does not ask for")
        if self._waits_left():
            told = f" ({self.waited_for})" if self.waited_for else ""
            raise self.diverged(f"the run waits for something that the code does not wait for any more{told}")

    def check_all_delivered(self) -> None:
        """Called at the end of the workflow: what is recorded one at a time cannot be left over."""
        for record in self.order[self.position : -1]:
            if isinstance(record, Record) and record.operation is not None and not record.operation.may_be_late:
                raise self.diverged(f'the workflow ends before the recorded result of "{record.operation.location}"')

    def check_further_waits(self) -> None:
        """Called where the run had settled: checks the waits that are not named one by one."""
        self._before_checkpoint = False
        further = self.waits.further
        awaited: dict[str, Any] = {key: record.operation for key, record in self.records.items() if is_awaited(record)}
        waiting = [op for op in (awaited | self.parked).values() if op.waits and not op.dead]
        if further is not None and not further.are_among(self.waits.unnamed(waiting)):
            raise self.diverged(
                f"the run waits for {further.count} more operations than are named, and the code waits for others"
            )

    def awaited_at(self, key: str) -> Any:
        """The operation with this key that the code has awaited, recorded or not; None if it lies in what is not executed again.

        Raises Diverged when the code has not come to it.
        """
        record = self.records.get(key)
        operation: Any = self.parked.get(key) if record is None else record.operation or self.parked.get(key)
        gone = any(key == location or key.startswith((f"{location}/", f"{location}[")) for location in self._removed)
        if operation is None and not gone and not self._is_over(digest(key, "")):
            raise self.diverged(
                f'the run was cancelled while it waited for "{key}", and the code does not wait for that'
            )
        return operation

    def _waits_left(self) -> bool:
        recorded = (record.entry for record in self.records.values() if record.entry is not None)
        return self.waits.left(recorded, self._is_over)

    def _is_over(self, wait: str) -> bool:
        """Whether a wait lies in an iteration that will not be executed again."""
        if any(lies_within(wait, loop) for loop in self.sealed):
            return True
        return any(
            lies_within(wait, loop) and any(lies_within(wait, f"{loop}[{past}]/") for past in range(iteration))
            for loop, iteration in self.progress.items()
        )

    @property
    def latest(self) -> Order:
        """The place in the order of record of the latest result that was delivered."""
        if self._live_latest is not None:
            return self._live_latest
        before = reversed(self.order[: self.position])
        delivered = (record for record in before if isinstance(record, Record | Cancellation))
        record = next(delivered, None)
        return (0, 0) if record is None or record.entry is None else record.entry.order

    def delivered(self, entry: Entry) -> None:
        """Notes a result that was recorded in this turn and is handed over now."""
        self._live_latest = entry.order

    # Divergence

    def diverge(self, why: str) -> None:
        """Stops the loop with a Diverged, whatever the code makes of it."""
        self.loop.fail(self.diverged(why))

    def diverged(self, why: str) -> Diverged:
        """The error that says what is recorded, what the code asks for, and what to do."""
        left = [r.any for r in self.records.values() if not is_awaited(r)]
        new = [operation for operation in self.parked.values() if not operation.dead]
        lines = [f"the code no longer matches the history of {self.title}: {why}."]
        if left:
            lines.append(f"Recorded and not reached: {some(left)}.")
        if new:
            renamed = any(op.kind == entry.kind for op in new for entry in left[:1])
            lines.append(f"The code asks for: {some(new)}{' (renamed?)' if renamed else ''}.")
        lines.append(
            "Nothing new was run. Deploy the code as it was, give operations their recorded names, guard the change with "
            "ctx.get_version(...), or register it as a new version of the workflow."
        )
        return Diverged(" ".join(lines))


def is_awaited(record: Record) -> bool:
    """Whether the operation of this record was reached and awaited."""
    return record.operation is not None and record.operation.awaited


def _order_of(record: Record | Cancellation | Checkpoint | None) -> Order:
    assert isinstance(record, Record | Cancellation)
    assert record.entry is not None
    return record.entry.order


def describe(kind: str, fn: str | None) -> str:
    """An operation in a few words: `step of charge`."""
    return f"a {kind}" if fn is None else f"a {kind} of {fn}"


def some(operations: Sequence[Any]) -> str:
    """The first few operations of a list, for people."""
    shown = [f'{op.kind} "{op.location}"' for op in operations[:3]]
    more = len(operations) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
