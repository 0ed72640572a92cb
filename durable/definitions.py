"""What an app registers: workflows, remote steps, singletons, cron expressions. Values, and no registry."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NoReturn, ParamSpec

from typing_extensions import TypeVar

from durable import codec
from durable.channels import Update
from durable.errors import InvalidInput
from durable.model.duration import Duration, seconds
from durable.model.run import Status
from durable.options import MISSING, Call

P = ParamSpec("P")
I = TypeVar("I")  # noqa: E741 - the name that readers of the signatures expect
R = TypeVar("R")
A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Singleton:
    """At most `limit` runs at a time for each key.

    `key` is a path into the input ("customer.id"). Beyond `max_queue` waiting runs a start is refused.
    """

    key: str
    limit: int = 1
    max_queue: int | None = None


@dataclass(frozen=True, slots=True)
class Cron:
    """When a schedule is due."""

    expression: str
    timezone: str = "UTC"


def cron(expression: str, *, timezone: str = "UTC") -> Cron:
    """A cron expression of EventBridge Scheduler (six fields) or of Unix (five)."""
    return Cron(f"cron({expression})", timezone)


def every(interval: Duration) -> Cron:
    """At a fixed interval."""
    return Cron(f"every({seconds(interval, 'every(interval)', minimum=60.0):g}s)")


@dataclass(frozen=True, eq=False, kw_only=True)
class Workflow(Generic[I, R]):
    """A registered workflow. Not callable: `ctx.child` runs it as a run of its own, `.fn` is the plain function."""

    name: str
    version: str
    fn: Callable[..., Coroutine[Any, Any, R]]
    takes_input: bool
    input_type: Any
    output_type: Any
    tags: tuple[str, ...] = ()
    timeout: float | None = None
    """Seconds from the first turn on."""
    retention: Mapping[Status, float] = field(default_factory=dict[Status, float])
    """Seconds that a run is kept after each ending; for good after one that is not in it."""
    singleton: Singleton | None = None
    max_entries: int | None = None
    """Ceiling of a run's history; None for the usual one."""
    validators: dict[str, tuple[Any, Callable[[Any], None]]] = field(
        default_factory=dict[str, tuple[Any, Callable[[Any], None]]]
    )
    """By update name: the argument's type and the function that may refuse it."""

    def validator(self, update: Update[A, Any], /) -> Callable[[Callable[[A], None]], Callable[[A], None]]:
        """Registers a function that runs before an update is stored: raising ValueError refuses it."""

        def register(check: Callable[[A], None]) -> Callable[[A], None]:
            self.validators[update.name] = (update.type, check)
            return check

        return register

    if not TYPE_CHECKING:  # to a type checker it is not callable

        def __call__(self, *_args: object, **_kwargs: object) -> NoReturn:
            raise TypeError(
                f"{self.name} is a workflow: use await ctx.child({self.name}, ...), client.start({self.name}, ...), "
                f"or await {self.name}.fn(ctx, ...) to run its code inline."
            )

    def __repr__(self) -> str:
        return f'<workflow "{self.name}" version "{self.version}">'


def input_text(workflow: Workflow[Any, Any], value: object, *, from_json: bool = False) -> str | None:
    """The input as JSON text, checked against the workflow's annotation; None for a workflow that takes none."""
    what = f'the input of workflow "{workflow.name}"'
    if not workflow.takes_input:
        if value is not MISSING and value is not None:
            raise InvalidInput(what, "it takes no input")
        return None
    if value is MISSING:
        raise InvalidInput(what, f"it is missing; the workflow takes {codec.type_name(workflow.input_type)}")
    if from_json:
        typed = codec.parsed(codec.encode(value, codec.UNTYPED, what=what), workflow.input_type, what=what)
    else:
        typed = codec.validated(value, workflow.input_type, what=what)
    return codec.encode(typed, workflow.input_type, what=what)


@dataclass(frozen=True, eq=False, kw_only=True)
class RemoteStep(Generic[P, R]):
    """A registered remote step. Not callable, so that `ctx.step(remote, ...)` is a type error; `.fn` is the function."""

    name: str
    fn: Callable[P, Any]
    output_type: Any
    queue: str
    retries: int
    timeout: float
    heartbeat: float | None = None
    options: Call = field(default_factory=Call)

    def using(self, options: Call, /) -> RemoteStep[P, R]:
        """The same remote step, called with these options."""
        return RemoteStep[P, R](
            name=self.name,
            fn=self.fn,
            output_type=self.output_type,
            queue=self.queue,
            retries=self.retries,
            timeout=self.timeout,
            heartbeat=self.heartbeat,
            options=options,
        )

    if not TYPE_CHECKING:  # to a type checker it is not callable

        def __call__(self, *_args: object, **_kwargs: object) -> NoReturn:
            raise TypeError(
                f'{self.name} is a remote step (queue "{self.queue}"). Use await ctx.call({self.name}, ...); '
                f"in a unit test call {self.name}.fn(...)."
            )

    def __repr__(self) -> str:
        return f'<remote step "{self.name}" on queue "{self.queue}">'


@dataclass(frozen=True, slots=True)
class Shape:
    """What a workflow function takes and gives."""

    takes_input: bool
    input_type: Any
    output_type: Any


def shape_of(fn: Callable[..., Any], names: Mapping[str, Any] | None = None) -> Shape:
    """Reads a workflow function's signature.

    Raises:
        TypeError: It is not an `async def` with the context and at most one input.
    """
    name = codec.callable_name(fn)
    if not inspect.iscoroutinefunction(fn):
        raise TypeError(f'workflow {name} must be an "async def": it waits by await')
    parameters = list(inspect.signature(fn).parameters.values())
    positional = [p for p in parameters if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}]
    if not 1 <= len(positional) <= 2 or len(positional) < len(parameters):
        raise TypeError(
            f"workflow {name} takes {', '.join(p.name for p in parameters) or 'nothing'}: it must take the context and at most "
            "one input. Put several inputs into one model."
        )
    takes_input = len(positional) == 2
    if takes_input and positional[1].default is not inspect.Parameter.empty:
        raise TypeError(
            f"workflow {name} has a default for {positional[1].name}: a run's input is always given and recorded. "
            "Annotate it as optional and start the workflow with None."
        )
    shape = Shape(
        takes_input=takes_input,
        input_type=codec.input_type(fn, names=names) if takes_input else type(None),
        output_type=codec.return_type(fn, names=names),
    )
    _check_plain_class(name, "takes", shape.input_type)
    _check_plain_class(name, "returns", shape.output_type)
    return shape


def _check_plain_class(name: str, verb: str, type_: Any) -> None:
    """Only classes are looked at: what is made of them may name some that are not defined yet."""
    if not inspect.isclass(type_):
        return
    if reason := codec.why_unstorable(type_):
        raise TypeError(
            f"workflow {name} {verb} {codec.type_name(type_)}: {reason}. Use a pydantic BaseModel, a dataclass, or plain "
            "JSON values."
        )
