"""Waiting for a condition: a check step and a sleep, round after round, until the check is content.

| state                    | history             | what happens                                                         |
|--------------------------|---------------------|----------------------------------------------------------------------|
| new                      | nothing             | runs the check as the step `name[0]/name`                            |
| not yet                  | `name[k]/name`      | sleeps as `name[k]/sleep`, at most until the deadline, then [k + 1]  |
| resumed                  | `~20`, `~40` ...    | goes on with the round that the recorded progress names              |
| content                  | an entry            | the value that the check returned                                    |
| past deadline, or tired  | `name[k]/...`       | WaitTimeout after a last check at the deadline                       |

It is a loop whose iterations are made here, and so are its records: old rounds go as a loop's do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, cast

from typing_extensions import TypeVar

from durable import codec
from durable.errors import WaitTimeout
from durable.journal import current_scope
from durable.ops.functions import known_function
from durable.ops.loop import argument_of, loop
from durable.ops.operation import Block, Host
from durable.ops.sleep import SleepOperation
from durable.ops.step import StepOperation
from durable.options import MISSING, Backoff, Step
from durable.values import Break, Continue

S = TypeVar("S")


@dataclass(frozen=True)
class Round(Generic[S]):
    """What one round hands to the next."""

    number: int
    state: S
    deadline: float | None = None
    """Seconds since 1970; fixed in the first round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Polling:
    """How often a condition is looked at, and when that is given up."""

    every: Backoff
    timeout: float | None
    attempts: int | None
    policy: Step


def wait_until(host: Host, name: str, check: Callable[..., Any], polling: Polling, state: Any = MISSING) -> Block:
    """Awaited, gives the first true value of the check, or the value of its Break where there is a state."""
    stateless = state is MISSING
    rounds = _Rounds(host, name, check, polling, stateless=stateless)
    body = _annotated(check, polling.policy, stateless=stateless)
    first = Round[Any](0, None if stateless else state)
    return loop(host, name, body, rounds.run, state=first, called="wait_until")


class _Rounds:
    def __init__(self, host: Host, name: str, check: Callable[..., Any], polling: Polling, *, stateless: bool) -> None:
        self._host = host
        self._name = name
        self._check = check
        self._polling = polling
        self._stateless = stateless

    async def run(self, before: Round[Any]) -> Break[Any] | Continue[Round[Any]]:
        deadline = before.deadline if before.number else self._deadline()
        arguments = () if self._stateless else (before.state,)
        verdict = await StepOperation(self._host, self._name, self._polling.policy, self._check, arguments)
        content = self._judged(verdict)
        if isinstance(content, Break):
            return content
        await self._sleep(before.number + 1, deadline)
        return Continue(Round(before.number + 1, content.state, deadline))

    def _deadline(self) -> float | None:
        timeout = self._polling.timeout
        return None if timeout is None else self._host.journal.loop.now + timeout

    def _judged(self, verdict: Any) -> Break[Any] | Continue[Any]:
        if self._stateless:
            return Break[Any](verdict) if verdict else Continue[Any](None)
        if isinstance(verdict, Break | Continue):
            return cast("Break[Any] | Continue[Any]", verdict)
        raise TypeError(
            f'the check of wait_until "{self._name}" has a state, so it returns Continue(state) or Break(value), not '
            f"{'None (a missing return?)' if verdict is None else f'a {type(verdict).__name__}'}"
        )

    async def _sleep(self, checks: int, deadline: float | None) -> None:
        polling = self._polling
        location = current_scope.get(self._host.journal.root).prefix.rpartition("[")[0]
        if polling.attempts is not None and checks >= polling.attempts:
            raise WaitTimeout(location, f"its last attempt ({checks})")
        delay = polling.every.delay_after(checks, f"{self._host.run_id}:{location}")
        if deadline is not None:
            left = deadline - self._host.journal.loop.now
            if left <= 0:
                raise WaitTimeout(location)
            delay = min(delay, left)
        await SleepOperation(self._host, delay)


def _annotated(check: Callable[..., Any], policy: Step, *, stateless: bool) -> Callable[..., Any]:
    """A function whose annotation tells the loop how to store the state and the value."""
    declared = known_function(check).result_type if policy.result is MISSING else policy.result
    if stateless:
        value, state = declared, type(None)
    else:
        value, state = argument_of(Break, declared), argument_of(Continue, declared)

    def rounds() -> None: ...

    value, state = (Any if known is codec.UNTYPED else known for known in (value, state))
    rounds.__annotations__["return"] = Break[value] | Continue[Round[state]]
    return rounds
