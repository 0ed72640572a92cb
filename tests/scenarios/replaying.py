"""Plays a run with every turn cold, and replays everything that it has ever written from every prefix of it."""

from collections.abc import Callable
from typing import Any

from durable.client import RunHandle
from durable.context import Context
from durable.definitions import Workflow
from durable.engine.options import EngineOptions
from durable.execution import Execution, Returned, RunInfo
from durable.model.entry import Entry
from durable.testing import TestEnvironment

Script = Callable[[TestEnvironment, RunHandle[Any]], None]
COLD = EngineOptions(parallel_runs=1, short_wait=0.0, cached_entries=0)
"""Every wait suspends the run, and every turn reads its history from the store."""


def nobody(env: TestEnvironment, handle: RunHandle[Any]) -> None:
    """Sends nothing."""
    del env, handle


def played_cold(
    workflow: Workflow[Any, Any], app: Any, *, script: Script = nobody, prefixes: bool = True, **started: Any
) -> Any:
    """The result of the run, after each prefix of its history was seen to fit its code.

    A prefix is what a crash leaves behind. Its replay must not diverge, and must come to the same end if it ends.
    """
    env = TestEnvironment(app, options=COLD)
    written: dict[tuple[int, int], Entry] = {}

    def note() -> None:
        env.restart()
        for entry in env.world.services.memory.history("r"):
            written.setdefault(entry.order, entry)

    env.world.after_delivery = note
    arguments = (started["input"],) if "input" in started else ()
    handle = env.start(workflow, *arguments, id="r")
    script(env, handle)
    result = handle.result()
    assert env.repairs == 0, "a wake was missing"
    if prefixes:
        history = [written[order] for order in sorted(written)]
        for length in range(len(history) + 1):
            replayed = _replayed(env, workflow, history[:length], arguments)
            assert replayed in (None, Returned(result)), (length, replayed)
    return result


def _replayed(env: TestEnvironment, workflow: Workflow[Any, Any], history: list[Entry], arguments: Any) -> Any:
    run = env.world.services.memory.get("r")
    assert run is not None
    assert run.started_at is not None
    info = RunInfo(id="r", workflow=run.workflow, version=run.version, started_at=env.now)
    execution = Execution(
        lambda execution: workflow.fn(Context(execution), *arguments), info, history=history, started_at=run.started_at
    )
    try:
        execution.advance()
        return execution.outcome if execution.finished else None
    finally:
        assert execution.unwind() == []
