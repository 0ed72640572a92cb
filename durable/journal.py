"""One run's history in memory: what is recorded where, which code has claimed it, and what comes next."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

from durable.errors import Diverged, DuplicateName, Misuse, OperationInsideStep, RunSuspended, UnawaitedOperation
from durable.loop import WorkflowLoop, dropped_generator, running_loop
from durable.model import location as locations
from durable.model.limits import WAITS_NAMED
from durable.model.run import Wait
from durable.model.sealing import seal

if TYPE_CHECKING:
    from durable.model.entry import Entry, Kind

FINDS_NO_END: Final = 100
"""Operations that an unwinding task may try before they wait for ever instead of raising once more."""

IMMEDIATE: Final = frozenset({"version", "removed"})
"""Kinds whose value is answered when they are called: they have no place in the order of delivery."""


class Claimant(Protocol):
    """An operation as the journal sees it."""

    kind: ClassVar[Kind]
    location: str
    fn: str | None
    scope: Scope

    @property
    def key(self) -> str: ...
    @property
    def awaited(self) -> bool: ...
    @property
    def dead(self) -> bool: ...


class Scope:
    """A namespace of operation names. It travels with the task, in a context variable."""

    __slots__ = ("branches", "prefix", "unawaited", "used")

    def __init__(self, prefix: str = "", branches: str | None = None) -> None:
        self.prefix = prefix
        self.branches = branches
        """Keys of the joins and races around; they are part of what every entry in here is checked for."""
        self.used: dict[str, int] = {}
        self.unawaited: dict[str, str] = {}
        """Location and kind of operations that were called and not awaited yet."""

    def explicit(self, name: str) -> str:
        """The location of a name that the author gave; DuplicateName when the scope has it already."""
        name = locations.escape(name)
        if name in self.used:
            raise DuplicateName(name, self.prefix)
        self.used[name] = 1
        return locations.check_length(self.prefix + name)

    def derived(self, name: str) -> str:
        """The location of a name that was taken from a function; numbered when it repeats: `charge`, `charge#2`."""
        name = locations.escape(name)
        count = self.used.get(name, 0) + 1
        self.used[name] = count
        location = self.prefix + name if count == 1 else f"{self.prefix}{name}#{count}"
        return location if len(location) < locations.SURELY_SHORT else locations.check_length(location)

    def within(self, prefix: str, keys: str | None = None) -> Scope:
        """A scope inside this one; `keys` are those of a join or race that it is a branch of."""
        around = self.branches
        branches = around if keys is None else shortened(keys if around is None else f"{around}|{keys}")
        return Scope(prefix, branches)


current_scope: ContextVar[Scope] = ContextVar("durable_scope")


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


class Journal:
    """The records of one run, claimed by the operations of the code as it is replayed."""

    def __init__(self, title: str, entries: Iterable[Entry], waits: Sequence[Wait], waits_digest: str | None) -> None:
        self.loop: WorkflowLoop
        self.title = title
        entries = sorted(entries, key=lambda entry: (entry.epoch, entry.n))
        self.progress, self.sealed, entries = seal(entries)
        self.records: dict[str, Record] = {}
        self.order: list[Record | None] = []
        for entry in entries:
            self._index(entry)
        self.unclaimed = len(self.records)
        self.order.append(None)  # so that the next record can be looked at without a check for the end
        self.position = 0
        self.parked: dict[str, Any] = {}
        """Operations that were awaited and have no result yet, by key, in the order of awaiting."""
        self.fresh: list[Any] = []
        """Those of them that the engine has not been told of."""
        self.created = 0
        self._waits: dict[str, float | None] = {wait.digest: wait.deadline for wait in waits}
        self._unmatched = set(self._waits)
        self._excused = False
        self._waits_digest = waits_digest
        self._sorted: list[str] | None = None

    def _index(self, entry: Entry) -> None:
        if entry.mark.startswith(("@", "?")):
            self.records.setdefault(entry.location, Record()).facts.append(entry)
            return
        record = self.records.setdefault(entry.key, Record())
        record.entry = entry
        if entry.kind not in IMMEDIATE:
            self.order.append(record)

    # Claims

    def enter(self, kind: str, name: str) -> Scope:
        """The scope of a call from workflow code; raises when the call comes from somewhere else."""
        loop = self.loop
        if running_loop() is not loop:
            raise loop.fail(OperationInsideStep(f'{kind} "{name}"'))
        if loop.closing is not None:
            self.refuse_while_closing()
        return current_scope.get()

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
        if record.operation is None:
            self.unclaimed -= 1
        record.operation = operation

    def park(self, operation: Any) -> None:
        """Takes an operation that was awaited and has no result in the history."""
        self.parked[operation.key] = operation
        self.fresh.append(operation)

    # Waits that the last settle named

    def recorded_deadline(self, location: str, kind: str, deadline: float | None) -> float | None:
        """The deadline of a wait that is awaited now: the recorded one, if the run has been suspended on it."""
        if not self._unmatched:
            return deadline
        digest = locations.digest(location, kind)
        if digest not in self._unmatched:
            return deadline
        self._unmatched.discard(digest)
        return self._waits[digest]

    def has_passed(self, scope: Scope) -> bool:
        """Whether older code has gone on from here: the scope holds records or waits that are not awaited yet."""
        self._excuse_waits()
        if any(not scope.prefix or locations.lies_within(wait, scope.prefix) for wait in self._unmatched):
            return True
        if self.order[self.position] is None and not self.unclaimed:
            return False
        return any(not is_awaited(record) for record in reversed(self._records_in(scope.prefix)))

    def _records_in(self, prefix: str) -> list[Record]:
        if self._sorted is None:
            self._sorted = sorted(self.records)
        start = bisect_left(self._sorted, prefix)
        end = bisect_left(self._sorted, prefix[:-1] + "0") if prefix else len(self._sorted)  # "0" follows "/"
        return [self.records[key] for key in self._sorted[start:end]]

    # The end of replay

    def check_all_claimed(self) -> None:
        """Raises Diverged when the history has something that the code has not asked for."""
        if self.unclaimed:
            raise self.diverged("there are records that the code does not ask for")
        self._excuse_waits()
        if self._unmatched:
            raise self.diverged("the run waits for something that the code does not wait for any more")
        self._check_further_waits()

    def _excuse_waits(self) -> None:
        """Drops waits that were resolved in a turn that died, or that lie in iterations which are over."""
        if not self._unmatched or self._excused:
            return
        self._excused = True
        waited = (r.entry for r in self.records.values() if r.entry is not None and r.entry.kind in {"sleep", "wait"})
        self._unmatched -= {locations.digest(entry.location, entry.kind) for entry in waited}
        self._unmatched = {wait for wait in self._unmatched if not self._is_sealed(wait)}

    def _is_sealed(self, wait: str) -> bool:
        if any(locations.lies_within(wait, loop) for loop in self.sealed):
            return True
        return any(
            locations.lies_within(wait, loop)
            and any(locations.lies_within(wait, f"{loop}[{past}]/") for past in range(iteration))
            for loop, iteration in self.progress.items()
        )

    def _check_further_waits(self) -> None:
        """Checks the waits beyond those that are named one by one: the same number, in the same order, may be followed by more."""
        expected = self._waits_digest
        if expected is None:
            return
        count = int(expected.partition(".")[0])
        pending = [wait_digest(op) for op in self.parked.values() if is_wait(op)]
        further = [digest for digest in pending if digest not in self._waits][:count]
        if combined(further) != expected:
            raise self.diverged(
                f"the run waits for {count} more operations than are named, and the code waits for others"
            )

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


def is_wait(operation: Any) -> bool:
    """Whether an operation is one that a run may be suspended on until a message or a deadline."""
    return operation.kind in {"sleep", "wait"} and not operation.dead


def wait_digest(operation: Any) -> str:
    """The digest by which the run record names a wait."""
    return locations.digest(operation.location, operation.kind)


def name_waits(waiting: Iterable[Any]) -> tuple[tuple[Wait, ...], str | None]:
    """What a settle writes of the operations that the run waits for, in the order of awaiting: `waits`, `waits_digest`."""
    named: list[Wait] = []
    further: list[str] = []
    for operation in waiting:
        if len(named) < WAITS_NAMED:
            named.append(Wait(digest=wait_digest(operation), deadline=operation.deadline))
        else:
            further.append(wait_digest(operation))
    return tuple(named), combined(further) if further else None


def combined(digests: Sequence[str]) -> str:
    """One short text for many digests: their number and a hash."""
    return f"{len(digests)}.{blake2b(' '.join(digests).encode(), digest_size=6).hexdigest()}"


@lru_cache(1024)
def shortened(keys: str) -> str:
    """Branch keys as entries carry them: as they are, or a hash where they are long."""
    if len(keys) <= 80:  # every entry in the branch carries it
        return keys
    return f"{keys[:40]}...{blake2b(keys.encode(), digest_size=6).hexdigest()}"


def unawaited(scope: Scope) -> UnawaitedOperation:
    """The error of a scope that ends with operations that were called and never awaited."""
    location, kind = next(iter(scope.unawaited.items()))
    others = len(scope.unawaited) - 1
    more = f" ({others} more)" if others else ""
    return UnawaitedOperation(
        f'{kind} "{location}"{more} was called and never awaited, so it did not run. Write: await ctx.{kind}(...). '
        "To run several at once use asyncio.gather or ctx.join."
    )


def describe(kind: str, fn: str | None) -> str:
    """An operation in a few words: `step of charge`."""
    return f"a {kind}" if fn is None else f"a {kind} of {fn}"


def some(operations: Sequence[Any]) -> str:
    """The first few operations of a list, for people."""
    shown = [f'{op.kind} "{op.location}"' for op in operations[:3]]
    more = len(operations) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
