"""Runs a scenario workflow as it was run when its history was recorded: its input, and what others sent it."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from itertools import groupby
from typing import Any, Final, Literal

from durable import Workflow, codec
from durable.client import RunHandle
from durable.model.envelope import Deliver
from durable.model.exported import ExportedHistory
from durable.model.message import StoredMessage
from durable.model.run import TERMINAL
from durable.testing import TestEnvironment, crash_matrix
from durable.testing.replaying import read_history
from tests.histories.catalogue import Scenario

Pace = Literal["at_once", "late"]
"""Whether messages are there when the run begins, or each comes when whatever went wrong before it is mended."""

FROM_OUTSIDE: Final = {"signal", "update", "event", "webhook", "review"}
"""Messages that somebody has to send; all others come of what the run does."""
PAUSE: Final = "37m"
"""Longer than any recovery; and deadlines of scenarios are no multiples of it."""


@dataclass(frozen=True)
class Recorded:
    """A scenario workflow and what it was given."""

    scenario: Scenario

    @cached_property
    def history(self) -> ExportedHistory:
        return read_history(self.scenario.file)

    @cached_property
    def messages(self) -> list[StoredMessage]:
        """What others have sent, in the order of arrival."""
        messages = (message for entry in self.history.entries for message in entry.messages)
        return sorted((m for m in messages if m.kind in FROM_OUTSIDE), key=lambda m: m.order)

    @property
    def paces(self) -> list[Pace]:
        return ["at_once", "late"] if self.messages else ["late"]

    @property
    def size(self) -> int:
        """About how much one execution does."""
        return len(self.history.entries) + len(self.messages)

    def matrix(self, pace: Pace, *, may_differ: bool = False) -> crash_matrix.CrashMatrix:
        """Dies, and stands still, at each of its port calls; raises AssertionError where that shows.

        One that `may_differ` may end otherwise than without trouble, but it ends, and nothing is recorded twice.
        """
        app = self.scenario.app
        workflow = next(known for known in app.workflows if self.scenario.is_that(known))
        fresh = environments(self.scenario)
        return crash_matrix.run(
            fresh, workflow, self._input(workflow), script=lambda env, run: self.play(env, run, pace),
            compare=left_open if may_differ else None,
        )  # fmt: skip

    def play(self, env: TestEnvironment, run: RunHandle[Any], pace: Pace) -> None:
        """Sends what was sent, then ends a run that nothing else would end."""
        for _, together in groupby(self.messages, key=lambda message: message.arrived_at):
            if pace == "late":
                env.advance(PAUSE)
            for message in together:
                env.ports.runs.send(
                    Deliver(run_id=run.id, id=message.id, name=message.name, kind=message.kind, body=message.body)
                )
        env.advance(PAUSE)
        mode = cancelled_by(self.history)
        if mode is not None and not env.get(run.id).ended:
            run.cancel(mode)
        elif env.world.next_event_at() is None and not env.get(run.id).ended:
            run.cancel("graceful")

    def _input(self, workflow: Workflow[Any, Any]) -> Any:
        return codec.decode(self.history.run.input, workflow.input_type) if workflow.takes_input else None


def left_open(clean: Mapping[str, crash_matrix.Ending], after: Mapping[str, crash_matrix.Ending]) -> list[str]:
    """Whether the run has come to no end after a crash, though it does without."""
    before, now = clean[crash_matrix.RUN_ID].status, after[crash_matrix.RUN_ID].status
    return [f"the run is {now}"] if before in TERMINAL and now not in TERMINAL else []


def cancelled_by(history: ExportedHistory) -> Literal["graceful", "compensate"] | None:
    """How the recorded run was cancelled, if it was."""
    if any(entry.kind == "cancel" for entry in history.entries):
        return "graceful"
    return "compensate" if history.run.status == "cancelled" else None


def environments(scenario: Scenario) -> Callable[[], TestEnvironment]:
    """Makes environments in which the scenario's module is as it was imported: its steps count calls in it, and so on."""
    module = vars(import_module(f"tests.scenarios.{scenario.module}"))
    before = {name: copy.deepcopy(value) for name, value in module.items() if _is_state(name, value)}

    def fresh() -> TestEnvironment:
        for name, value in before.items():
            match module[name]:
                case list() as kept:
                    kept[:] = copy.deepcopy(value)
                case dict() | set() as kept:
                    kept.clear()
                    kept.update(copy.deepcopy(value))
                case _:
                    module[name] = value
        return TestEnvironment(scenario.app)

    return fresh


def _is_state(name: str, value: object) -> bool:
    return not name.startswith("__") and isinstance(value, list | dict | set | int | float | None)
