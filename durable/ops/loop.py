"""A loop: iterations that pass on state; past ones are not executed again.

| state     | history                          | what happens                                                     |
|-----------|----------------------------------|------------------------------------------------------------------|
| new       | nothing                          | runs the body from the initial state                             |
| under way | `poll[3]/...`                    | executes iterations again from the last recorded progress        |
| resumed   | `~20`: the state before [20]     | waits for that record in its order, then goes on with its state  |
| over      | an entry with the value of Break | waits for that record in its order and returns it                |

Until a record that replaces executed code is delivered, a cancellation of the loop is held back: the record proves
that the code outlived every cancellation before it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, get_args, get_origin

from durable import codec
from durable.journal import Entered, Journal, Scope, unawaited
from durable.ops.operation import Block, Host
from durable.ops.progress import LoopRecord, end_tasks, outliving
from durable.options import MISSING
from durable.values import Break, Continue

HISTORY: Final = 20
"""Iterations between two records of progress."""


def loop(
    host: Host,
    name: str,
    body: Callable[..., Awaitable[Any]],
    run_body: Callable[..., Awaitable[Any]],
    *,
    state: Any = MISSING,
    history: int = HISTORY,
    called: str = "loop",
) -> Block:
    """Awaited, gives the value of the Break that ends it.

    `body` is the author's function, for its annotations and its name; `run_body` is the same with the context bound;
    `called` is the method of the context that has made it.
    """
    if history < 1:
        raise ValueError(f"ctx.loop(history=...) must be 1 or more, not {history}")
    return Block(
        host,
        called,
        name,
        lambda journal, scope, location: _Loop(journal, scope, location, name, body, run_body, history).run(state),
    )


class _Loop:
    def __init__(
        self,
        journal: Journal,
        scope: Scope,
        location: str,
        name: str,
        body: Callable[..., Awaitable[Any]],
        run_body: Callable[..., Awaitable[Any]],
        history: int,
    ) -> None:
        self._journal = journal
        self._scope = scope
        self._location = location
        self._name = name
        self._body = body
        self._run_body = run_body
        self._history = history

    async def run(self, state: Any) -> Any:
        if self._location in self._journal.sealed:
            return await outliving(self._record("", None, _break_type(self._body)))
        stateless = state is MISSING
        iteration = self._journal.progress.get(self._location, 0)
        if iteration:
            recorded = await outliving(self._record(f"~{iteration}", None, _state_type(self._body)))
            state = MISSING if stateless else recorded
        while True:
            outcome = await self._iterate(iteration, state)
            if isinstance(outcome, Break):
                return await self._record_value(outcome.value)
            iteration += 1
            state = MISSING if stateless else outcome.state
            if iteration % self._history == 0:
                recorded = await self._record_state(iteration, None if stateless else state)
                state = MISSING if stateless else recorded

    async def _iterate(self, iteration: int, state: Any) -> Break[Any] | Continue[Any]:
        scope = self._scope.within(f"{self._location}[{iteration}]/")
        created = self._journal.loop.created
        outcome: Break[Any] | Continue[Any] | None
        with Entered(scope):
            running: Any = self._run_body() if state is MISSING else self._run_body(state)
            if not hasattr(running, "__await__"):  # the annotation may lie
                raise TypeError(
                    f'the body of loop "{self._name}" must be async def: it gave {_shown(running)} instead of a coroutine'
                )
            outcome = await running
        await end_tasks(self._journal, scope, created)
        if scope.unawaited:
            self._journal.loop.fail(unawaited(scope))
        if outcome is None and state is MISSING and codec.return_type(self._body) in (None, type(None)):
            return Continue(None)
        if not isinstance(outcome, Break | Continue):  # the annotation may lie
            raise TypeError(
                f'the body of loop "{self._name}" returned {_shown(outcome)} in iteration {iteration}: return Continue(state) '
                f"to go on or Break(value) to stop{' (a missing return?)' if outcome is None else ''}"
            )
        return outcome

    async def _record_value(self, value: Any) -> Any:
        type_ = _break_type(self._body)
        text = codec.encode(value, type_, what=f'the value of loop "{self._name}"')
        return await self._record("", text, type_)

    async def _record_state(self, iteration: int, state: Any) -> Any:
        type_ = _state_type(self._body)
        text = codec.encode(state, type_, what=f'the state of loop "{self._name}" after iteration {iteration - 1}')
        return await self._record(f"~{iteration}", text, type_)

    def _record(self, mark: str, text: str | None, type_: Any) -> LoopRecord:
        return LoopRecord(self._journal, self._scope, self._location, mark, text, type_)


def _break_type(body: Callable[..., Any]) -> Any:
    return argument_of(Break, codec.return_type(body))


def _state_type(body: Callable[..., Any]) -> Any:
    return argument_of(Continue, codec.return_type(body))


def argument_of(wanted: type, annotation: Any) -> Any:
    """What the annotation says of Break or Continue: T of `Break[T] | Continue[S]`."""
    for form in (annotation, *get_args(annotation)):
        if get_origin(form) is wanted:
            return get_args(form)[0]
    return codec.UNTYPED


def _shown(outcome: object) -> str:
    return "None" if outcome is None else f"a {type(outcome).__name__}"
