"""A step: user code that runs once and whose result is recorded.

| state            | history at the location          | what happens                                        |
|------------------|----------------------------------|-----------------------------------------------------|
| new              | nothing                          | the engine runs the body                            |
| between attempts | `@1` ... `@k`, the last retry_at | the engine runs the next attempt when it is due     |
| in doubt         | `@k` of an at-most-once start    | the engine asks `verify`, or raises StepInterrupted |
| done             | a value                          | the value is decoded and returned                   |
| failed           | an error and its failure kind    | StepFailed is raised, or returned by `try_step`     |
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from durable import codec, failures
from durable.ops.functions import known_function
from durable.ops.operation import Host, Operation
from durable.ops.undo import check_undo, compensation_of
from durable.options import MISSING, Step
from durable.values import Failed, Ok

if TYPE_CHECKING:
    from durable.model.entry import Compensation, Entry


class StepOperation(Operation):
    """`await ctx.step(charge, order)`."""

    __slots__ = ("_args", "_function", "_known", "_kwargs", "policy", "run_id")
    kind = "step"
    may_be_late = True

    def __init__(
        self,
        host: Host,
        name: str | None,
        policy: Step,
        fn: Callable[..., Any],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        if not callable(fn):
            raise _called_too_early(fn)
        if policy.undo_fn is not None:
            check_undo(policy.undo_fn, args, kwargs or {})
        self.policy = policy
        self._function = fn
        self._args = args
        self._kwargs = kwargs
        self.run_id = host.run_id
        self._known = known = known_function(fn)
        super().__init__(host, name or policy.name, known.name, known.qualified_name)

    @property
    def name(self) -> str:
        """The step's own name, without its scope."""
        return self.location[len(self.scope.prefix) :]

    @property
    def call(self) -> Callable[[], Any]:
        """The body with its arguments bound; what it returns may be awaitable."""
        return functools.partial(self._function, *self._args, **(self._kwargs or {}))

    @property
    def arguments(self) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        """What the body is called with, for `verify`."""
        return self._args, self._kwargs or {}

    @property
    def compensation(self) -> Compensation | None:
        """How the step is undone once it is done; raises NotStorable where its arguments cannot be kept."""
        undo = self.policy.undo_fn
        return None if undo is None else compensation_of(undo, self._args, self._kwargs or {})

    @property
    def attempts(self) -> tuple[Entry, ...]:
        """The recorded attempts, in their order."""
        return tuple(
            sorted((fact for fact in self.facts if fact.mark.startswith("@")), key=lambda fact: int(fact.mark[1:]))
        )

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at this step of this run, and for no other; another one once it was undone."""
        undone = self.journal.undone.get(self.location)
        step = f"{self.run_id}:{self.location}" if undone is None else f"{self.run_id}:{self.location}:{undone}"
        return sha256(step.encode()).hexdigest()[:32]

    @property
    def result_type(self) -> Any:
        """The declared type of the result."""
        return self._known.result_type if self.policy.result is MISSING else self.policy.result

    def encode(self, value: Any) -> str:
        """The value as JSON text; raises NotStorable when it would not come back as it is."""
        return codec.encode(value, self.result_type)

    def decode(self, entry: Entry) -> Any:
        if entry.error is not None:
            raise failures.step_failed(self.name, entry.attempts, entry.error, entry.failure or "exhausted")
        return self.read(entry.value, self.result_type)


class TryStepOperation(StepOperation):
    """`await ctx.try_step(charge, order)`: failures of the kinds in `Step(catch=...)` are returned, not raised."""

    __slots__ = ()

    def decode(self, entry: Entry) -> Any:
        if entry.error is None:
            return Ok(super().decode(entry))
        kind = entry.failure or "exhausted"
        if kind not in self.policy.catch:
            return super().decode(entry)
        return Failed(kind, self.name, entry.attempts, entry.error)


def _called_too_early(value: object) -> TypeError:
    if inspect.iscoroutine(value):
        value.close()
    return TypeError(
        f"ctx.step() got {type(value).__name__}, not a function: pass the function and its arguments, as in "
        "ctx.step(charge, order), not ctx.step(charge(order))"
    )
