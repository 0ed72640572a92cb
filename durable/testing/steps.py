"""Runs step bodies in a test: stand-ins where a test has put some, and bodies that take their process with them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from durable.engine.steps import Finished
from durable.testing.faults import InvocationKilled

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable
    from typing import NoReturn

    from durable.adapters.memory import VirtualClock
    from durable.engine.steps import Job, StepRunner
    from durable.testing.mocks import Mock, Mocks


def kill_process() -> NoReturn:
    """Call it in a step body: its invocation dies there, as if the process had run out of memory."""
    raise InvocationKilled


class TestSteps:
    """Implements `StepRunner` around another one."""

    __test__ = False

    def __init__(
        self, inner: StepRunner, mocks: Mocks, clock: VirtualClock, executions: Counter[tuple[str, str]]
    ) -> None:
        self._inner = inner
        self._mocks = mocks
        self._clock = clock
        self._executions = executions
        self._replaced: dict[int, tuple[Job, Job]] = {}

    def start(self, job: Job) -> None:
        """Begins the body, or its stand-in."""
        if not job.verifies:
            self._executions[job.operation.run_id, job.operation.location] += 1
        mock = None if job.verifies else self._mocks.find(job.operation)
        if mock is None:
            self._inner.start(job)
            return
        stand_in = replace(job, call=_instead(mock, job.operation.call))
        self._replaced[id(stand_in)] = (stand_in, job)
        self._inner.start(stand_in)

    def elapsed(self) -> float:
        """Bodies are timed in real time."""
        return self._inner.elapsed()

    def next(self, timeout: float) -> Finished | None:
        """The next body that ended. Virtual time goes on with real time while a body keeps the turn waiting."""
        finished = self._inner.next(timeout)
        if finished is None:
            self._clock.advance(max(0.0, timeout))
            return None
        if isinstance(finished.error, InvocationKilled):
            raise finished.error
        _, job = self._replaced.pop(id(finished.job), (None, finished.job))
        return replace(finished, job=job)


def _instead(mock: Mock[Any], call: Callable[[], Any]) -> Callable[[], Any]:
    """The same call of the stand-in; arguments that the author has bound with a partial count too."""
    return partial(mock, *call.args, **call.keywords) if isinstance(call, partial) else mock
