"""Remote steps for workers in any language: they claim a task and tell how it went, with a token that proves the claim.

| where somebody dies                          | what follows                                                            |
|----------------------------------------------|-------------------------------------------------------------------------|
| before the task has left its queue           | the queue gives it to the next who asks; it keeps its first pickup      |
| after that, the worker's answer included     | the run misses heartbeats or the attempt's timeout, and tries again     |
| after the result was sent                    | the worker sends it again, or not: the run takes the first              |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pydantic_core import to_json

from durable import codec
from durable.engine.pickup import POLL_SECONDS, PickedUp, pick_up, received
from durable.engine.reporting import leave_lane, tell
from durable.errors import QueueNotServed
from durable.model.limits import TASK_KEPT_SECONDS
from durable.model.task import DONE, AttemptRef, StepTask, TaskOutcome
from durable.model.tokens import Claims, sign, verify
from durable.ports import TaskSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from durable.app import App
    from durable.errors import ErrorInfo
    from durable.ports import Ports

HIDDEN_SECONDS: Final = 30.0
"""A claim that dies before the task has left its queue is made again by somebody after this time."""
MARGIN_SECONDS: Final = 60.0
"""A token outlives its attempt by this, so that a result that comes too late is told so."""
TRIES: Final = 10
"""Tasks that are looked at for one claim; those that nobody wants any more are not handed out."""
Sources: TypeAlias = Callable[[str], TaskSource | None]
"""The end that workers of a queue receive from; None where the name has no queue of its own."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A task that is the worker's, with what it needs to tell how it went."""

    token: str
    task: StepTask
    left: float
    """Seconds that it may take."""


class TaskClaims:
    """What the API does for workers that are not written with this library."""

    def __init__(self, app: App[Any], ports: Ports, sources: Sources) -> None:
        self._app = app
        self._ports = ports
        self._sources = sources

    def claim(self, queue: str, *, worker: str, wait: float) -> Claimed | None:
        """A task, or None after `wait` seconds without one.

        Raises:
            QueueNotServed: The name has no queue of its own.
        """
        source = self._sources(queue)
        if source is None:
            raise QueueNotServed(queue)
        key = self._ports.signing.keys()[0]  # before a task is taken for which no token could be made
        looked_at = 0
        for patience in _slices(wait):
            while looked_at < TRIES and (deliveries := source.receive(wait=patience, hidden=HIDDEN_SECONDS)):
                looked_at += len(deliveries)
                for delivery in deliveries:
                    task = received(self._ports, delivery)
                    if task is None:
                        continue
                    picked_up = pick_up(self._ports, task, worker)
                    source.acknowledge(delivery.id)
                    if picked_up is not None:
                        return Claimed(sign(key, self._claims(task, picked_up, worker)), task, picked_up.left)
        return None

    def heartbeat(self, token: str, progress: object = None) -> bool:
        """Tells that the attempt lives; whether its result is still wanted."""
        claims = self._verified(token)
        text = None if progress is None else codec.encode(progress, codec.UNTYPED, what="the progress")
        row = self._ports.store.beat_task(claims.run_id, claims.id, now=self._ports.clock.now(), progress=text)
        return row.closed in {None, DONE}

    def complete(self, token: str, result: object) -> bool:
        """Tells the result, plain JSON data; whether it was still wanted. The first one counts, a second is harmless.

        Raises:
            InvalidInput: It is not what the remote step returns.
            LimitExceeded: It is too large.
        """
        claims = self._verified(token)
        return self._end(claims, self._outcome(claims, value=self._encoded(claims.extra["name"], result)))

    def fail(self, token: str, error: ErrorInfo, *, retryable: bool = True, retry_after: float | None = None) -> bool:
        """Tells that the attempt failed; whether that was still wanted. Twice is harmless."""
        claims = self._verified(token)
        outcome = self._outcome(
            claims,
            error=error,
            retryable=retryable,
            retry_after=retry_after,
            failure=None if retryable else "critical",
        )
        return self._end(claims, outcome)

    def _end(self, claims: Claims, outcome: TaskOutcome) -> bool:
        attempt = AttemptRef(claims.run_id, claims.location, claims.id, claims.extra.get("lane"))
        now = self._ports.clock.now()
        tell(self._ports, attempt, outcome)
        # Before the slot is given up: a holder whose attempt is closed is dead, whatever becomes of this request.
        row = self._ports.store.close_task(claims.run_id, claims.id, reason=DONE, expires_at=now + TASK_KEPT_SECONDS)
        leave_lane(self._ports, attempt)
        return row.closed == DONE

    def _outcome(self, claims: Claims, **how: Any) -> TaskOutcome:
        return TaskOutcome(started_at=float(claims.extra["at"]), worker=claims.extra["worker"], **how)

    def _encoded(self, name: str, result: object) -> str:
        """By the type that the function declares, if this code has it: what the workflow could not read is refused here."""
        remote = self._app.remote_steps.get(name)
        type_ = codec.UNTYPED if remote is None else remote.output_type
        what = f'the result of remote step "{name}"'
        value = codec.parsed(to_json(result, inf_nan_mode="strings"), type_, what=what)
        return codec.encode(value, type_, what=what)

    def _claims(self, task: StepTask, picked_up: PickedUp, worker: str) -> Claims:
        extra = {"name": task.name, "at": repr(picked_up.at), "worker": worker}
        if task.lane is not None:
            extra["lane"] = task.lane
        expires_at = picked_up.at + task.timeout + MARGIN_SECONDS
        return Claims(
            kind="task", run_id=task.run_id, location=task.location, id=task.id, expires_at=expires_at, extra=extra
        )

    def _verified(self, token: str) -> Claims:
        return verify(self._ports.signing.keys(), token, kind="task", now=self._ports.clock.now())


def _slices(wait: float) -> Iterator[float]:
    """The waits of single requests: at least one, which may be none."""
    yield min(wait, POLL_SECONDS)
    while (wait := wait - POLL_SECONDS) > 0:
        yield min(wait, POLL_SECONDS)
