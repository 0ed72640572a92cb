"""A remote step's body as a worker runs it: its call, what it can ask about itself, its heartbeats."""

from __future__ import annotations

import logging
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from durable import codec
from durable.engine.streaming import Streams
from durable.errors import InvalidInput, StoreUnavailable
from durable.model.chunk import ChunkBody, execution_of
from durable.ops.arguments import arguments_from
from durable.step_context import StepContext

if TYPE_CHECKING:
    from collections.abc import Callable

    from durable.definitions import RemoteStep
    from durable.model.task import StepTask
    from durable.ports import Ports

log = logging.getLogger("durable")

BEAT_SECONDS: Final = 5.0
"""Heartbeats are stored no more often than this, or a third of the longest silence that is allowed."""


class RemoteBody:
    """What is performed for one task."""

    def __init__(self, task: StepTask, remote: RemoteStep[..., Any]) -> None:
        """Raises InvalidInput where the function that is deployed here takes other arguments."""
        self.run_id = task.run_id
        self.location = task.location
        try:
            args, kwargs = arguments_from(task.input, remote.fn)
        except (ValueError, TypeError, LookupError) as problem:
            reason = codec.reason_of(problem) if isinstance(problem, ValueError) else str(problem)
            raise InvalidInput(f'the arguments of remote step "{remote.name}"', reason) from problem
        self.call: Callable[[], Any] = partial(remote.fn, *args, **kwargs)
        self._output_type = remote.output_type

    @property
    def name(self) -> str:
        """What it is called in its scope."""
        return self.location.rpartition("/")[2]

    def encode(self, value: object) -> str:
        """The result as JSON text; raises NotStorable or LimitExceeded."""
        return codec.encode(value, self._output_type)


class Heart:
    """Stores heartbeats of one attempt, and learns from them whether its result is still wanted."""

    def __init__(self, ports: Ports, task: StepTask) -> None:
        self._ports = ports
        self._task = task
        self._pause = BEAT_SECONDS if task.heartbeat is None else min(BEAT_SECONDS, task.heartbeat / 3)
        self._lock = Lock()
        self._next = ports.clock.monotonic()
        self._wanted = True

    def beat(self, progress: object) -> bool:
        """Whether the result is still wanted, as far as is known. A store that does not answer stops no body."""
        with self._lock:
            now = self._ports.clock.monotonic()
            if now < self._next or not self._wanted:
                return self._wanted
            text = None if progress is None else codec.encode(progress, codec.UNTYPED, what="the progress")
            try:
                row = self._ports.store.beat_task(
                    self._task.run_id, self._task.id, now=self._ports.clock.now(), progress=text
                )
            except StoreUnavailable as error:
                log.warning("run %s: a heartbeat of %s was not stored: %s", self._task.run_id, self._task.id, error)
                return True
            self._next = now + self._pause
            self._wanted = row.closed is None
            return self._wanted


def context_of(ports: Ports, task: StepTask, *, ends: float, delivery: int) -> StepContext:
    """What `step_context()` gives inside the body; `delivery` numbers the executions of one attempt."""
    streams = Streams(ports, task.run_id, task.epoch)
    execution = f"{execution_of(task.epoch, task.attempt)}.{delivery:06d}"

    def append(stream: str, number: int, text: str) -> None:
        streams.append(stream, ChunkBody(text=text, source=task.location, execution=execution, number=number))

    return StepContext(
        run_id=task.run_id, location=task.location, attempt=task.attempt, idempotency_key=task.idempotency_key, ends=ends,
        append=append, fetch=ports.blobs.get, headers=task.headers, workflow=task.workflow, beat=Heart(ports, task).beat,
    )  # fmt: skip
