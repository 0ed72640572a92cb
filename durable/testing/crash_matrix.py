"""Runs a workflow once for every port call, dying or standing still there, and compares each with an untroubled run."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from durable.client.reading import the_run
from durable.errors import Deadlock, RunError
from durable.model.history import counting_entries, unpacked
from durable.model.sealing import seal
from durable.records import pages_of
from durable.testing.wake_sources import check_wake_sources

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from durable.client import RunHandle
    from durable.definitions import Workflow
    from durable.ports import Ports
    from durable.testing.environment import TestEnvironment

Script = Callable[["TestEnvironment", "RunHandle[Any]"], None]
"""What clients do after the start: send messages, pass time."""

Recovery = Literal["redelivery", "maintenance"]
"""Who wakes a run whose invocation died: the queue that delivers again, or, its wake being lost too, maintenance."""

RUN_ID: Final = "matrix"
ATTEMPTS: Final = re.compile(r"after \d+ attempts?")
"""A crash costs an attempt: an error that tells how many there were is the same error."""
SHOWN: Final = 10
AFTERMATH_SECONDS: Final = 600.0
"""What other runs have left to do once the run has ended: long enough to recover twice from a crash."""
FREEZE_SECONDS: Final = 300.0
"""Longer than a lease, the visibility timeout and two sweeps."""


def no_messages(environment: TestEnvironment, handle: RunHandle[Any]) -> None:
    """The script of a workflow that needs nothing from outside."""
    del environment, handle


@dataclass(frozen=True, slots=True)
class Crash:
    """An invocation dies at a port call."""

    number: int
    call: str
    after: bool
    recovery: Recovery

    def plan(self, environment: TestEnvironment) -> None:
        """Makes it happen in this environment."""
        environment.crash_at(self.number, after=self.after)
        environment.world.lose_wakes_of_killed = self.recovery == "maintenance"

    def __str__(self) -> str:
        side = "after" if self.after else "before"
        return f"dying {side} call {self.number} ({self.call}), recovered by {self.recovery}"


@dataclass(frozen=True, slots=True)
class Freeze:
    """An invocation stands still before a port call until others have taken its run over, and then goes on."""

    number: int
    call: str

    def plan(self, environment: TestEnvironment) -> None:
        """Makes it happen in this environment."""
        environment.faults.freeze(FREEZE_SECONDS, at=self.number)

    def __str__(self) -> str:
        return f"standing still before call {self.number} ({self.call})"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended: its outcome, and what its history says."""

    status: str
    outcome: str
    history: frozenset[tuple[str, str, str]]
    """Location, kind and value, or error, of every result."""
    done: frozenset[str]
    """Locations of the steps that have given a value."""


Compare = Callable[["Mapping[str, Ending]", "Mapping[str, Ending]"], "Sequence[str]"]
"""Given how the runs ended without trouble and with it, by their ids; what is wrong, if anything."""


@dataclass(frozen=True, slots=True)
class CrashMatrix:
    """What was tried."""

    calls: Sequence[str]
    """The port calls of the untroubled run."""
    crashes: int
    """How many runs died once, each somewhere else."""
    freezes: int
    """How many lost their lease once while they stood still, each somewhere else."""
    repeated: int
    """How often a step's body ran once more, over all of them."""


def run(
    new_environment: Callable[[], TestEnvironment],
    workflow: Workflow[Any, Any],
    input: Any,
    *,
    script: Script = no_messages,
    recoveries: Sequence[Recovery] = ("redelivery", "maintenance"),
    compare: Compare | None = None,
) -> CrashMatrix:
    """Raises AssertionError naming the troubles after which outcome or history were not those of the clean run.

    `compare` names what is wrong with how the runs have ended, for a workflow that may end otherwise after a crash.
    """
    compare = compare or _differences
    environment = new_environment()
    clean = _play(environment, workflow, input, script)
    if environment.repairs:
        raise AssertionError("a run without crashes was woken by maintenance: some wake is missing")
    calls, executed = tuple(environment.calls), environment.world.executions.total()
    crashes = [
        Crash(number, call, after, recovery)
        for recovery in recoveries
        for number, call in enumerate(calls, start=1)
        for after in (False, True)
    ]
    freezes = [Freeze(number, call) for number, call in enumerate(calls, start=1)]
    repeated, wrong = 0, list[str]()
    for trouble in (*crashes, *freezes):
        environment = new_environment()
        trouble.plan(environment)
        try:
            wrong += [f"{trouble}: {text}" for text in compare(clean, _play(environment, workflow, input, script))]
        except (AssertionError, Deadlock) as failure:
            wrong.append(f"{trouble}: {failure}")
        repeated += environment.world.executions.total() - executed
    if wrong:
        more = f"\nand {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        raise AssertionError("not as in the run without trouble:\n" + "\n".join(wrong[:SHOWN]) + more)
    return CrashMatrix(calls, len(crashes), len(freezes), repeated)


def _play(
    environment: TestEnvironment, workflow: Workflow[Any, Any], input: Any, script: Script
) -> Mapping[str, Ending]:
    environment.world.after_delivery = lambda: check_wake_sources(environment.world.services)
    handle = environment.handle(workflow, RUN_ID)
    if workflow.takes_input:
        environment.start(workflow, input, id=RUN_ID)
    else:
        environment.start(workflow, id=RUN_ID)
    script(environment, handle)
    with suppress(RunError):  # a failure that was handled nowhere is an outcome like any other
        handle.result()
    store = environment.world.services.memory
    environment.run_until_idle()
    if len(store.runs) > 1:
        environment.advance(AFTERMATH_SECONDS)
    epochs = [str(epoch) for run in store.runs for epoch in range(run.born, run.epoch + 1)]
    endings = {run.id: _ending(environment.ports, run.id, epochs) for run in store.runs}
    for run_id, ending in endings.items():
        for location in ending.done:
            if not environment.world.executions[run_id, location]:
                raise AssertionError(f'step "{location}" of run "{run_id}" has a value and was never executed')
    return endings


def _ending(ports: Ports, run_id: str, epochs: Sequence[str]) -> Ending:
    """What is compared. Ids that a run makes contain its epoch, and a crash costs an epoch: those are left out."""

    def comparable(text: str) -> str:
        for epoch in epochs:
            text = text.replace(epoch, "<epoch>")
        return ATTEMPTS.sub("after <n> attempts", text)

    run = the_run(ports, run_id)
    output = ports.store.get_payload(run.id, "output", epoch=run.epoch) if run.output_stored else run.output
    history = unpacked(entry for page in pages_of(ports.store, run.id) for entry in page.entries)
    _, _, lasting = seal(list(counting_entries(run, history)))  # the rest goes now or a turn later
    results = [
        (entry.location, entry.kind, comparable(str(entry.error) if entry.error else str(entry.value)))
        for entry in lasting
        if not entry.mark
    ]
    if len({location for location, _, _ in results}) != len(results):
        raise AssertionError(f'a result of run "{run.id}" is recorded twice')
    done = frozenset(it.location for it in lasting if it.kind == "step" and not it.mark and it.error is None)
    return Ending(run.status, comparable(str(run.error or output)), frozenset(results), done)


def _differences(clean: Mapping[str, Ending], crashed: Mapping[str, Ending]) -> list[str]:
    found: list[str] = []
    for run_id in sorted(clean.keys() | crashed.keys()):
        before, after = clean.get(run_id), crashed.get(run_id)
        if before is None or after is None:
            found.append(f'run "{run_id}" exists in one of both only')
            continue
        if (before.status, before.outcome) != (after.status, after.outcome):
            found.append(
                f'run "{run_id}" ended as {after.status} ({after.outcome}), not as {before.status} ({before.outcome})'
            )
        if before.history != after.history:
            only = sorted(before.history ^ after.history)
            found.append(f'the history of run "{run_id}" differs in {only}')
    return found
