"""A retried block: rounds of the same body, until one succeeds or all are used up.

| state         | history                   | what happens                                                              |
|---------------|---------------------------|---------------------------------------------------------------------------|
| new           | nothing                   | runs the body in the scope `name[0]/`                                     |
| round failed  | `name[0]/...`             | records `~1`, then sleeps as `name[1]/sleep#0`, then runs in `name[1]/`   |
| resumed       | `~k`: k rounds failed     | waits for that record in its order and goes on with round k               |
| succeeded     | `name[k]/...`             | executes the last round again on replay and returns its value             |
| failed        | `name[k]/...`             | executes the last round again on replay and raises its error              |

Rounds that failed are not executed again: their progress says that they did. So what a round changes outside itself
is gone after it, as with a loop, and a round that has not begun may run new code.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from durable.errors import CallbackFailed, Misuse, NonRetryableError, StepFailed
from durable.journal import Journal, Scope
from durable.ops.blocks import run_within, wants_rollback
from durable.ops.operation import Block, Host
from durable.ops.progress import LoopRecord, end_tasks, outliving
from durable.ops.sleep import SleepOperation
from durable.options import Backoff

RECORDED_AS: Final = "retrying"
"""Tells the progress of a retried block from that of a loop."""


class DelayOperation(SleepOperation):
    """The sleep before a round. `#0` is a number that no other operation of the round's scope can get."""

    __slots__ = ()

    def __init__(self, host: Host, scope: Scope, seconds: float) -> None:
        self.journal = journal = host.journal
        self._seconds = seconds
        self.future = self.iterator = self.fn = None
        self.scope = scope
        self.location = f"{scope.prefix}sleep#0"
        journal.enter("sleep", self.location)
        self._register(journal, scope, self.location)


def retrying(host: Host, name: str, body: Callable[[], Awaitable[Any]], *, retries: int, backoff: Backoff) -> Block:
    """Awaited, gives the value of the first round that succeeds; raises the error of the last one."""
    return Block(
        host,
        "block",
        name,
        lambda journal, scope, location: _Retrying(host, journal, scope, location, body).run(retries, backoff),
    )


class _Retrying:
    def __init__(
        self, host: Host, journal: Journal, scope: Scope, location: str, body: Callable[[], Awaitable[Any]]
    ) -> None:
        self._host = host
        self._journal = journal
        self._scope = scope
        self._location = location
        self._body = body

    async def run(self, retries: int, backoff: Backoff) -> Any:
        failed = self._journal.progress.get(self._location, 0)
        if failed:
            await outliving(self._progress(failed))
        while True:
            scope = self._scope.within(f"{self._location}[{failed}]/")
            if failed:
                await DelayOperation(self._host, scope, backoff.delay_after(failed, self._key))
            created = self._journal.loop.created
            try:
                return await run_within(self._journal, scope, self._body)
            except Exception as error:
                if failed >= retries or _is_final(error):
                    raise
            await end_tasks(self._journal, scope, created)
            failed += 1
            await self._progress(failed)

    @property
    def _key(self) -> str:
        return f"{self._host.run_id}:{self._location}"

    def _progress(self, failed: int) -> LoopRecord:
        return LoopRecord(self._journal, self._scope, self._location, f"~{failed}", None, type(None), fn=RECORDED_AS)


def _is_final(error: Exception) -> bool:
    """Whether no further round could mend it."""
    if isinstance(error, Misuse | NonRetryableError) or wants_rollback(error):
        return True
    if isinstance(error, CallbackFailed):
        return not error.retryable
    return isinstance(error, StepFailed) and error.kind == "critical"
