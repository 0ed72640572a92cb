"""Undoes what a run has done: the latest step first, each undo tried as a durable step is, under status `rolling_back`.

It needs the history and none of the workflow's code, so it covers steps of loops, branches and try blocks alike, and
runs that are blocked. Outcomes are entries: after a crash the next turn goes on with the step that has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable.engine.attempts import Attempts
from durable.engine.lease import dead_turns
from durable.engine.pauses import Ended, OutOfTime, Pause, Quiescent
from durable.engine.undoing import OUTCOME, Undo
from durable.model.history import counting_entries
from durable.records import pages_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from durable.engine.lease import Lease, Loaded
    from durable.engine.options import EngineOptions
    from durable.engine.steps import StepRunner
    from durable.engine.writer import EntryWriter
    from durable.model.entry import Entry
    from durable.model.packages import Packages
    from durable.model.run import Run
    from durable.ports import Ports
    from durable.propagation import Carriers


def done_steps(run: Run, entries: Iterable[Entry], kept: Iterable[Entry]) -> list[Entry]:
    """The steps that a rollback is about, the latest first: those with an undo, since the last checkpoint."""
    results = {entry.order: entry for entry in (*counting_entries(run, kept), *entries) if not entry.mark}
    checkpoint = max((entry.order for entry in results.values() if entry.kind == "checkpoint"), default=(0, 0))
    steps = [entry for entry in results.values() if entry.compensation is not None and entry.order > checkpoint]
    return sorted(steps, key=lambda entry: entry.order, reverse=True)


def outcome_of(step: Entry, entries: Iterable[Entry]) -> Entry | None:
    """How the undo of a step has ended. One that is older than the step belongs to an execution before it."""
    found = (e for e in entries if e.mark == OUTCOME and e.location == step.location and e.order > step.order)
    return next(found, None)


def kept_entries(ports: Ports, run_id: str, entries: Iterable[Entry]) -> Sequence[Entry]:
    """What was kept of iterations that are gone; nothing is asked for a run without loops."""
    if not any(entry.kind == "loop" for entry in entries):
        return ()
    return [entry for page in pages_of(ports.store, run_id) for entry in page.kept]


class Rollback:
    """The rollback of one run, within one turn."""

    def __init__(
        self, *, ports: Ports, lease: Lease, loaded: Loaded, writer: EntryWriter, runner: StepRunner,
        options: EngineOptions, longest: float, carriers: Carriers, packages: Packages,
    ) -> None:  # fmt: skip
        self._ports = ports
        self._run = lease.run
        self._ends = lease.ends
        self._options = options
        self._loaded = loaded
        self._writer = writer
        self._steps = done_steps(lease.run, loaded.entries, kept_entries(ports, lease.run.id, loaded.entries))
        self._attempts = Attempts(
            run=lease.run, writer=writer, runner=runner, clock=ports.clock, options=options, ends=lease.ends,
            longest=longest, carriers=carriers,
        )  # fmt: skip
        self._longest = longest
        self._packages = packages
        self._charges = lease.run.died

    def go(self) -> Pause:
        """Undoes one step after the other; raises a Misuse where the deployed code cannot."""
        for step in self._steps:
            if outcome_of(step, self._loaded.entries) is None and (pause := self._undo(step)) is not None:
                return pause
        return Ended()

    @property
    def failed(self) -> list[str]:
        """Locations of the steps that could not be undone."""
        entries = [*self._loaded.entries, *self._writer.written]
        outcomes = [outcome_of(step, entries) for step in self._steps]
        return [outcome.location for outcome in outcomes if outcome is not None and outcome.error is not None]

    def _undo(self, step: Entry) -> Pause | None:
        """None once there is an outcome, be it a failure: the other steps are undone all the same."""
        assert step.compensation is not None
        undo = Undo(
            self._run.id, step, step.compensation, self._loaded.entries, longest=self._longest, packages=self._packages
        )
        self._attempts.admit(undo)
        if self._charges:
            self._charges = False  # only the first undo of this turn may have been under way when the last one died
            run = self._run
            self._attempts.charge(dead_turns(self._loaded, run.epoch, run.clean_epoch, run.released_epoch))
        clock = self._ports.clock
        while self._attempts:
            out_of_time = self._attempts.start_due()
            if self._attempts.running:
                self._attempts.wait(self._ends - clock.monotonic() + self._options.reserve)
                continue
            if out_of_time or clock.monotonic() >= self._ends:
                return OutOfTime(())
            due_at = self._attempts.next_start(clock.now())
            left = 0.0 if due_at is None else due_at - clock.now()
            if left > self._options.short_wait or clock.monotonic() + left > self._ends:
                return Quiescent((), due_at)
            clock.sleep(max(0.0, left))
        return None
