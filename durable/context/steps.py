"""Steps: code with side effects, whose result is recorded once."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, cast, overload

from durable.codec import callable_name
from durable.context.part import Op, Part, close_coroutine
from durable.definitions import RemoteStep, Workflow
from durable.model.ids import check_name
from durable.model.transaction import TransactItem, checked_items
from durable.ops.call import NO_QUEUES, CallOperation
from durable.ops.functions import misfit
from durable.ops.step import StepOperation, TryStepOperation
from durable.ops.transact import TransactOperation
from durable.ops.undo import check_own_undo
from durable.options import Call, Step, Undoable
from durable.values import Failed, Ok

if TYPE_CHECKING:
    from durable.flow import Registry

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")

PLAIN = Step()
PLAIN_CALL = Call()


class StepCalls(Part):
    """The part of the context that runs steps."""

    # The first argument, a name or a policy, is never callable, so the forms cannot be confused; async before sync,
    # because an async function is a function too. All are positional-only: a user's keyword may be called `fn` or `name`.

    @overload
    def step(self, fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> Op[T]: ...
    @overload
    def step(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Op[T]: ...
    @overload
    def step(self, step: str | Step, fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> Op[T]: ...
    @overload
    def step(self, step: str | Step, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Op[T]: ...
    @overload
    def step(
        self, step: Undoable[T, P], fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Op[T]: ...
    @overload
    def step(self, step: Undoable[T, P], fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Op[T]: ...
    def step(self, first: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Runs a function once and gives its recorded result, now and on every replay.

        Forms: `ctx.step(fn, *args)`, `ctx.step("name", fn, *args)`, `ctx.step(Step(...), fn, *args)`. The function may be
        sync (it runs in a thread) or async. The result must fit its return annotation and be storable.

        Raises:
            StepFailed: The attempts are used up, or the error is not retried. The exception is also an instance of the
                step's own error class, so `except CardDeclined` works.
            StepInterrupted: An at-most-once step may have run and left no result.
        """
        name, policy, fn, args = self._parse("ctx.step", first, args)
        self._check("ctx.step", policy, fn, args, kwargs)
        return StepOperation(self._execution, name, policy, fn, args, kwargs)

    @overload
    def try_step(self, fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> Op[Ok[T] | Failed]: ...
    @overload
    def try_step(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Op[Ok[T] | Failed]: ...
    @overload
    def try_step(
        self, step: str | Step, fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Op[Ok[T] | Failed]: ...
    @overload
    def try_step(
        self, step: str | Step, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Op[Ok[T] | Failed]: ...
    @overload
    def try_step(
        self, step: Undoable[T, P], fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Op[Ok[T] | Failed]: ...
    @overload
    def try_step(
        self, step: Undoable[T, P], fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Op[Ok[T] | Failed]: ...
    def try_step(self, first: Any, /, *args: Any, **kwargs: Any) -> Any:
        """As `step`, but a failure of the kinds in `Step(catch=...)` is returned as `Failed`, a success as `Ok`."""
        name, policy, fn, args = self._parse("ctx.try_step", first, args)
        self._check("ctx.try_step", policy, fn, args, kwargs)
        return TryStepOperation(self._execution, name, policy, fn, args, kwargs)

    @overload
    def call(self, fn: RemoteStep[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Op[R]: ...
    @overload
    def call(self, call: str | Call, fn: RemoteStep[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Op[R]: ...
    def call(self, first: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Has a remote step performed by another function or process, and gives its result.

        Forms: `ctx.call(remote, *args)`, `ctx.call("name", remote, *args)`, `ctx.call(Call(...), remote, *args)`. The run
        is suspended meanwhile and costs nothing. Arguments and result go by the annotations of the remote step's function.

        Raises:
            StepFailed: The attempts are used up, or the error is not retried, as of `ctx.step`: it is also an instance of
                the error class of the remote step. A call that nobody has answered in time is a StepTimeout inside.
            LimitExceeded: The arguments are too large to be sent.
            NotStorable: They would not arrive as they are.
        """
        name, call = (first if isinstance(first, str) else None), (first if isinstance(first, Call) else PLAIN_CALL)
        if name is not None:
            check_name("call name", name)
        if isinstance(first, str | Call) and args:
            first, args = args[0], args[1:]
        remote = _passed_remote_step(first, self._execution.app)
        check_arguments("ctx.call", remote.fn, args, kwargs)
        app = self._execution.app
        return CallOperation(
            self._execution, name, call, remote, args, kwargs, queues=NO_QUEUES if app is None else app.queues
        )

    def transact(self, name: str, items: Sequence[TransactItem], /) -> Op[None]:
        """Writes to tables of one's own, in one transaction with the record of this operation: exactly once.

        `items` are those of DynamoDB's TransactWriteItems, with plain Python values: `{"Put": {"TableName": ...,
        "Item": {...}}}`, `Update`, `Delete`, `ConditionCheck`. At most 98.

        Raises:
            StepFailed: A condition did not hold, or an item could not be written. It is also a TransactionRefused that
                says which item, and nothing was written.
        """
        known = checked_items("ctx.transact", items)
        return TransactOperation(self._execution, check_name("name of a transaction", name), known)

    def _check(
        self, operation: str, policy: Step, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        check_arguments(operation, fn, args, kwargs)
        app = self._execution.app
        if policy.undo_fn is not None and app is not None:
            check_own_undo(policy.undo_fn, app.packages)

    def _parse(
        self, operation: str, first: Any, args: tuple[Any, ...]
    ) -> tuple[str | None, Step, Callable[..., Any], tuple[Any, ...]]:
        match first:
            case str():
                check_name("step name", first)
                name, policy = first, PLAIN
            case Step():
                name, policy = first.name, first
            case Undoable():
                step: Step = first.step
                name, policy = step.name, step
            case _:
                return None, PLAIN, _passed_function(operation, first), args
        if not args:
            raise TypeError(
                f'{operation}() got a name or a policy and no function. Write {operation}("name", fn, ...); if the text is '
                f"the result of a call, {operation}(fn, ...), not {operation}(fn(...))."
            )
        passed, rest = args[0], args[1:]
        if isinstance(passed, str | Step | Undoable) and rest and callable(rest[0]):
            named = passed if isinstance(passed, str) else name
            raise TypeError(
                f"{operation}() takes a name or a policy, not both. The name belongs into the policy: "
                f'{operation}(Step("{named}", ...), {_name_of(rest[0])}, ...).'
            )
        return name, policy, _passed_function(operation, passed), rest


POLICY: Final = frozenset(inspect.signature(Step).parameters)


def check_arguments(operation: str, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Raises TypeError where the function cannot be called so: in the step it would be an error that is tried again."""
    why = misfit(fn, args, kwargs)
    if why is None:
        return
    name = _name_of(fn)
    policy = ", ".join(f"{key}={value!r}" for key, value in kwargs.items() if key in POLICY)
    given = ", ".join([name, *map(_short, args), *(f"{k}={_short(v)}" for k, v in kwargs.items() if k not in POLICY)])
    first = f" A policy comes first: {operation}(Step({policy}), {given})." if policy else ""
    raise TypeError(f"{operation}({name}, ...): the arguments after the function go to {name}(): {why}.{first}")


def _short(value: object) -> str:
    return repr(value) if isinstance(value, int | float) or value is None else "..."


def _name_of(fn: Callable[..., Any]) -> str:
    return callable_name(fn).rpartition(".")[2]


def _passed_function(operation: str, fn: Any) -> Callable[..., Any]:
    match fn:
        case RemoteStep():
            raise TypeError(
                f'{fn.name} is a remote step (queue "{fn.queue}"). Use await ctx.call({fn.name}, ...); '
                f"in a unit test call {fn.name}.fn(...)."
            )
        case Workflow():
            raise TypeError(
                f"{fn.name} is a workflow, not a step: use await ctx.child({fn.name}, ...), "
                f"or await {fn.name}.fn(ctx, ...) to run its code inline."
            )
        case _ if callable(fn):
            return fn
        case _:
            raise _called_instead_of_passed(operation, fn)


def _passed_remote_step(fn: Any, app: Registry | None) -> RemoteStep[..., Any]:
    if not isinstance(fn, RemoteStep):
        raise TypeError(
            f"ctx.call() takes a function that @app.remote_step has registered, not {_shown(fn)}: "
            "a function of this process is run by ctx.step."
        )
    remote = cast("RemoteStep[..., Any]", fn)
    known = None if app is None else app.remote_steps.get(remote.name)
    if app is not None and (known is None or known.fn is not remote.fn):
        raise TypeError(
            f'remote step "{remote.name}" is not registered in app "{app.name}", so its workers do not know it: register it '
            "there with @app.remote_step, or call it from a workflow of the app that has it."
        )
    return remote


def _called_instead_of_passed(operation: str, value: Any) -> TypeError:
    name = "fn"
    if inspect.iscoroutine(value):
        name = value.__qualname__.rpartition(".")[2]
        close_coroutine(value)
    return TypeError(
        f"{operation}() got {_shown(value)}, not a function. Pass the function and its arguments: "
        f"{operation}({name}, ...), not {operation}({name}(...))."
    )


def _shown(value: object) -> str:
    if inspect.isroutine(value):
        return callable_name(value)
    return f"the result of a call ({type(value).__name__})"
