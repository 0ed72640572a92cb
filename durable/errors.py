"""Every error and interrupt of the framework; the tree comes first.

DurableError
├── outcomes, raised into workflow code
│   ├── StepFailed               a step ran out of attempts (also an instance of the user's own class)
│   ├── StepInterrupted          an at-most-once step may have run and left no result
│   ├── StepTimeout · AttemptInterrupted · UnknownRemoteStep   what an attempt failed with, in `StepFailed.error`
│   ├── WaitTimeout              a wait reached its deadline (a TimeoutError)
│   │   └── HeartbeatTimeout     an outside system was silent for too long
│   ├── CallbackFailed           an outside system reported a failure
│   ├── JoinError                branches of a join failed (an ExceptionGroup)
│   ├── RaceError                every branch of a race failed (an ExceptionGroup)
│   ├── ChildFailed              a child did not complete (also an instance of the user's own class)
│   │   └── ChildCancelled · ChildTimedOut
│   ├── EntityFailed             an operation of an entity failed (also an instance of the user's own class)
│   ├── MapError                 more items of a map failed than are tolerated
│   └── TransactionRefused       a transaction wrote nothing (always inside a StepFailed)
├── decisions, raised by step code
│   ├── NonRetryableError        fail now, no further attempt
│   │   └── RollbackError        fail now and roll the run back
│   └── RetryAfter               try again, but not before a delay
├── Misuse                       a rule of the framework was broken: the run is blocked, nothing is lost
│   ├── Diverged · DuplicateName · UnawaitedOperation · OperationInsideStep · NotAllowedInWorkflow
│   ├── Deadlock · BusyLoop · StepTooLong · UnknownWorkflow · UnknownEntityVersion · UndecodableHistory · NotAvailable
│   ├── UnansweredUpdate · UpdateAnswered · RunawayContinuation
│   ├── HistoryFull              the history has as many entries as it may
│   └── PayloadUnreadable · SealingFailed   the app's codec, or the bucket, does not give a value back, or take it
├── refusals, raised to callers before anything is stored
│   ├── InvalidName · InvalidInput · LimitExceeded · NotStorable
│   ├── RunNotFound · RunAlreadyExists · RunEnded · RetryRefused · DeletionRefused
│   ├── IdempotencyKeySpent · WorkflowNotRegistered
│   ├── UpdateRejected           a validator, or the run itself, refused an update
│   ├── LaneFull                 as many runs of a singleton wait as may
│   ├── NotWaiting · NotAReviewer · BlobGone
│   ├── QueueNotServed           tasks were claimed of a queue that is none of its own
│   └── InvalidToken · TokenExpired   a token of a task, callback or webhook is not accepted
├── UpdateTimeout                an update is accepted and has no answer yet (a TimeoutError)
├── RunError                     how a run that did not complete is reported
│   └── RunFailed · RunWasCancelled · RunTimedOut · RunDead · RunBlocked
└── engine
    ├── Fenced                   another invocation owns the run now
    └── StoreUnavailable         a service did not answer; the turn ends and is repeated
RunCancelled (asyncio.CancelledError)   raised into the operations of a run that is cancelled
RunSuspended (BaseException)            unwinds the tasks of a run that is being suspended
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Self


class DurableError(Exception):
    """The root of everything this framework raises, interrupts excepted."""


# Outcomes of operations


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorInfo:
    """What is kept of an exception: its class by name, its message, its JSON-able data and its cause."""

    type: str
    message: str
    module: str = ""
    data: Any = None
    cause: ErrorInfo | None = None

    @property
    def qualified(self) -> str:
        """`module.Class`, or the bare class name of a builtin."""
        return self.type if self.module in {"", "builtins"} else f"{self.module}.{self.type}"

    def matches(self, error: type[BaseException]) -> bool:
        """Whether the recorded class is `error` itself, by module and name."""
        return (self.module, self.type) == (error.__module__, error.__qualname__)

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


class StepFailed(DurableError):
    """A step failed for good: its attempts are used up or its error is not retried."""

    def __init__(self, name: str, attempts: int, error: ErrorInfo, kind: str = "exhausted") -> None:
        self.name = name
        self.attempts = attempts
        self.error = error
        self.kind = kind
        Exception.__init__(self, name, attempts, error, kind)

    def matches(self, error: type[BaseException], /) -> bool:
        """Whether the step's own error was of this class."""
        return self.error.matches(error)

    def __str__(self) -> str:
        times = "1 attempt" if self.attempts == 1 else f"{self.attempts} attempts"
        return f'step "{self.name}" failed after {times}: {self.error}'


class StepTimeout(DurableError, TimeoutError):
    """An attempt did not end within its timeout. Its body cannot be stopped; its late result is dropped."""

    def __init__(self, timeout: float, why: str | None = None) -> None:
        why = why or f"no result within {timeout:g} s"
        super().__init__(f"{why}. The body cannot be stopped and may still have its effect.")


class UnknownRemoteStep(DurableError, LookupError):
    """No worker that got the task knows the remote step: its code is older or newer than the workflow's."""

    def __init__(self, name: str, known: str) -> None:
        super().__init__(
            f'no worker knows remote step "{name}" (this one knows: {known}). Deploy the code that registers it where its '
            "queue is served."
        )


class AttemptInterrupted(DurableError):
    """The invocation ended during an attempt, so nobody knows how the attempt ended; it counts as failed."""

    def __init__(self) -> None:
        super().__init__("the invocation ended during the attempt (a crash, a time or memory limit)")


class StepInterrupted(DurableError):
    """An at-most-once step started, left no result, and is not run again."""

    def __init__(self, name: str, idempotency_key: str, started_at: str) -> None:
        self.name = name
        self.idempotency_key = idempotency_key
        super().__init__(
            f'step "{name}" may have run: it started at {started_at} and left no result. It is at_most_once, so it is '
            f"not run again. Ask the service that it calls, by the idempotency key {idempotency_key}."
        )


class WaitTimeout(DurableError, TimeoutError):
    """A wait reached its deadline before what it waited for arrived."""

    def __init__(self, location: str, reached: str = "its deadline") -> None:
        self.location = location
        super().__init__(f'the wait at "{location}" reached {reached}')


class HeartbeatTimeout(WaitTimeout):
    """An outside system that had promised signs of life gave none for too long."""

    def __init__(self, location: str) -> None:
        super().__init__(location, "the longest silence that it allows")


class CallbackFailed(DurableError):
    """An outside system reported that what it was asked to do has failed; `error` is what it said."""

    def __init__(self, name: str, error: ErrorInfo, *, retryable: bool) -> None:
        self.name = name
        self.error = error
        self.retryable = retryable
        """Whether it may be asked again, as far as it knows."""
        super().__init__(name, error)

    def __str__(self) -> str:
        return f'callback "{self.name}" failed: {self.error}'


def _in_short(error: Exception) -> str:
    text = str(error.error) if isinstance(error, StepFailed) else f"{type(error).__name__}: {error}"
    return text if len(text) <= 100 else text[:99] + "…"


class BranchesFailed(DurableError, ExceptionGroup[Exception]):
    """Errors of several branches, each under its branch's key in `failures`; `except*` reaches into the group."""

    name: str
    failures: dict[str, Exception]

    def __new__(cls, name: str, failures: Mapping[str, Exception]) -> Self:
        said = "; ".join(f"{key} ({_in_short(error)})" for key, error in failures.items())
        group = super().__new__(cls, cls._said.format(name=name, failures=said), list(failures.values()))
        group.name = name
        group.failures = dict(failures)
        return group

    _said = '"{name}" failed in: {failures}'

    def __init__(self, name: str, failures: Mapping[str, Exception]) -> None:
        """Everything is done in `__new__`, where exception groups take their message and members."""

    def derive(self, excs: Sequence[Any], /) -> ExceptionGroup[Any]:
        return ExceptionGroup(self.message, excs)


class JoinError(BranchesFailed):
    """Branches of a join failed; the others were not cut short."""

    _said = 'join "{name}" failed in branches: {failures}'


class RaceError(BranchesFailed):
    """Every branch of a race failed, so nobody won."""

    _said = 'race "{name}" has no winner; failed: {failures}'


class ChildFailed(DurableError):
    """A child ended and did not complete; `status` says how, `error` is its own error.

    Where the class of that error is already loaded, it is also an instance of it, as StepFailed is.
    """

    def __init__(self, run_id: str, status: str, error: ErrorInfo) -> None:
        self.run_id = run_id
        self.status = status
        self.error = error
        super().__init__(run_id, status, error)

    def __str__(self) -> str:
        return f'child "{self.run_id}" {_HOW_IT_ENDED.get(self.status, self.status)}: {self.error}'

    def matches(self, error: type[BaseException], /) -> bool:
        """Whether the child's own error, or what its failed step raised, is of this class, by module and name."""
        return self.error.matches(error) or (self.error.cause is not None and self.error.cause.matches(error))


class ChildCancelled(ChildFailed):
    """A child was cancelled."""


class ChildTimedOut(ChildFailed):
    """A child reached its own timeout."""


_HOW_IT_ENDED: Final = {"cancelled": "was cancelled", "timed_out": "timed out", "dead": "died"}


class EntityFailed(DurableError):
    """An operation of an entity failed, and the entity is as it was before; `error` is what it failed with.

    Where the class of that error is already loaded, it is also an instance of it, as StepFailed is.
    """

    def __init__(self, entity: str, key: str, operation: str, error: ErrorInfo) -> None:
        self.entity = entity
        self.key = key
        self.operation = operation
        self.error = error
        super().__init__(entity, key, operation, error)

    def __str__(self) -> str:
        operation = f"{self.entity}.{self.operation or 'state'}"
        return f'{operation} of entity "{self.key}" failed: {self.error}'

    def matches(self, error: type[BaseException], /) -> bool:
        """Whether the operation's own error, or what its failed step raised, is of this class, by module and name."""
        return self.error.matches(error) or (self.error.cause is not None and self.error.cause.matches(error))


class MapError(DurableError):
    """More items of a `try_map` failed than are tolerated; `result` has every outcome until then."""

    def __init__(self, name: str, result: Any, *, failed: int, tolerated: int) -> None:
        self.name = name
        self.result = result
        super().__init__(f'map "{name}": {failed} items failed, {tolerated} are tolerated')


class TransactionRefused(DurableError):
    """A transaction was refused as a whole, and nothing was written; `item` is the index of the one that it failed at."""

    def __init__(self, item: int | None, reason: str) -> None:
        self.item = item
        self.reason = reason
        where = "the transaction" if item is None else f"item {item} of the transaction"
        super().__init__(f"{where} was refused ({reason}); nothing was written")


class NonRetryableError(DurableError):
    """Raise it in a step: the step fails at once, whatever attempts are left."""


class RollbackError(NonRetryableError):
    """Raise it in a step or a workflow: fail at once and undo what the run has done."""


class RetryAfter(DurableError):
    """Raise it in a step: this attempt failed, and the next one starts after `delay` (seconds, timedelta or text)."""

    def __init__(self, delay: Any, message: str = "") -> None:
        self.delay = delay
        super().__init__(message or f"try again after {delay}")


# Misuse: the run is blocked until the code is mended


class Misuse(DurableError):
    """A rule of the framework was broken. The run is blocked and keeps its history: mend the code and deploy."""


class Diverged(Misuse):
    """The code no longer matches the run's history."""


class DuplicateName(Misuse, ValueError):
    """An explicit name was used twice in one scope."""

    def __init__(self, name: str, scope: str) -> None:
        where = f"scope {scope}" if scope else "the workflow's own scope"
        super().__init__(
            f'"{name}" is used twice in {where}. Names identify operations in the history: '
            f'give each a name of its own, for example f"{name}-{{n}}".'
        )


class UnawaitedOperation(Misuse):
    """An operation was called and never awaited, so it did not run."""


class OperationInsideStep(Misuse):
    """A workflow operation was called outside the workflow's own code."""

    def __init__(self, operation: str) -> None:
        super().__init__(
            f"{operation} was called outside the workflow's own code (inside a step, a thread or another event loop). "
            "A step runs once and cannot be suspended: move the call into the workflow, or make the block a workflow."
        )


class NotAllowedInWorkflow(Misuse, RuntimeError):
    """I/O, threads, executors or signals in workflow code, which is replayed."""

    def __init__(self, what: str, instead: str = "do it in a step: await ctx.step(fetch, url)") -> None:
        super().__init__(f"{what} is not possible in workflow code, because workflow code is replayed: {instead}")


class Deadlock(Misuse):
    """The run waits for something that nothing can complete."""


class BusyLoop(Misuse):
    """Workflow code keeps itself busy without waiting for an operation."""


class StepTooLong(Misuse):
    """A step's timeout does not fit into a whole invocation."""

    def __init__(self, name: str, timeout: float, available: float) -> None:
        super().__init__(
            f'step "{name}" has a timeout of {timeout:g} s, but a whole invocation has {available:.3g} s for steps. '
            "Raise the orchestrator's timeout (parameter OrchestratorTimeout; locally: durable dev --timeout) or lower "
            "Step(timeout=...)."
        )


class UnknownWorkflow(Misuse):
    """The run's workflow, or its version, is not in the deployed code."""

    def __init__(self, workflow: str, version: str, known: str) -> None:
        super().__init__(
            f'workflow "{workflow}" version "{version}" is not registered in the deployed code (registered: {known}). '
            "Deploy the code that has it; the run goes on from where it is."
        )


class UnknownEntityVersion(Misuse):
    """The state of an entity was kept by a later version of its class than the deployed one."""

    def __init__(self, entity: str, kept: int, deployed: int) -> None:
        super().__init__(
            f"entity {entity} holds a state of version {kept}, and the deployed class has version {deployed}. Deploy code "
            "that has it; what was asked meanwhile is performed then."
        )


class UndecodableHistory(Misuse):
    """A recorded value cannot be read with the type that the code has now."""

    def __init__(self, location: str, expected: str, reason: str) -> None:
        super().__init__(f'the value recorded at "{location}" cannot be read as {expected} any more: {reason}')


class HistoryFull(Misuse):
    """The history of a run has as many entries as it may."""

    def __init__(self, entries: int, limit: int) -> None:
        self.entries = entries
        self.limit = limit
        super().__init__(
            f"the history of the run has {entries:,} entries, and its ceiling is {limit:,}. Write a loop without end as "
            "ctx.loop(...), whose past rounds are deleted, or go on with ctx.continue_as_new(...). To let this run go on, deploy "
            "a higher @app.workflow(max_entries=...)."
        )


class PayloadUnreadable(Misuse):
    """A stored value cannot be read: its blob is gone, or the app's codec does not open it."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"a stored value cannot be read: {reason}. Nothing is lost: mend that, and the run goes on.")


class SealingFailed(Misuse):
    """The app's codec refused to seal a value, so it was not stored."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"the app's codec does not seal {what}: {reason}. It was not stored.")


class UnansweredUpdate(Misuse):
    """The code takes another update of a name before it has answered the one before."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f'an update "{name}" has been taken and not answered: call .respond(value) or .reject(reason) on it before the '
            "next one is taken. Its caller waits."
        )


class UpdateAnswered(Misuse):
    """An update was answered twice."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f'an update "{name}" is answered twice: only the first .respond() or .reject() reaches its caller'
        )


class NotAvailable(Misuse, NotImplementedError):
    """This version of the framework declares the operation and cannot perform it yet."""

    def __init__(self, operation: str) -> None:
        self.operation = operation
        super().__init__(f"{operation} is not available in this version of durable: nothing was recorded or sent")


# Refusals: nothing was stored


class InvalidName(DurableError, ValueError):
    """An id, a name or a tag has a character or a length that is not allowed."""

    def __init__(self, what: str, value: str, rule: str) -> None:
        shown = value if len(value) <= 60 else value[:57] + "..."
        super().__init__(f"{what} {shown!r} is not allowed: {rule}")


class InvalidInput(DurableError, ValueError):
    """A value does not fit the declared type."""

    def __init__(self, what: str, reason: str) -> None:
        self.reason = reason
        super().__init__(f"{what}: {reason}")


class LimitExceeded(DurableError, ValueError):
    """A value is larger than a limit of the platform or the framework."""

    def __init__(self, what: str, size: int, limit: int, unit: str = "bytes", instead: str = "") -> None:
        self.size = size
        self.limit = limit
        way_out = f" {instead}" if instead else ""
        super().__init__(f"{what} is {size:,} {unit}; the limit is {limit:,} {unit}.{way_out}")


class NotStorable(DurableError, TypeError):
    """A value would not come back from storage as it is."""


class RunNotFound(DurableError, LookupError):
    """There is no run with this id."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(f'there is no run "{run_id}"')


class RunAlreadyExists(DurableError):
    """The id is taken by a run with another input or workflow."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(
            f'run "{run_id}" exists already. Use another id. A start with the same workflow and input gives the existing run, '
            'unless on_conflict="error" is asked for.'
        )


class RunEnded(DurableError):
    """The run has ended, so it takes no messages and cannot be steered."""

    def __init__(self, run_id: str, status: str, instead: str = "") -> None:
        self.run_id = run_id
        self.status = status
        super().__init__(f'run "{run_id}" has ended ({status})' + (f". {instead}" if instead else ""))


class RunawayContinuation(Misuse):
    """A run has continued as new a thousand times and more, about as fast as it could."""

    def __init__(self, generations: int, seconds: float) -> None:
        self.generations = generations
        super().__init__(
            f"the run has continued as new {generations:,} times within {seconds:,.0f} s: it seems to wait for nothing. Let each "
            "round wait or sleep, or do its work in ctx.loop(...). After a deployment, or when it is resumed, it goes on."
        )


class LaneFull(DurableError):
    """As many runs of a singleton wait as may, so this one was not started."""

    def __init__(self, workflow: str, lane: str, limit: int) -> None:
        self.workflow = workflow
        self.lane = lane
        self.limit = limit
        super().__init__(
            f'workflow "{workflow}" is a singleton, and {limit:,} runs wait already in "{lane}" (max_queue={limit}). Nothing '
            "was stored: start it later, or raise max_queue."
        )


class RetryRefused(DurableError):
    """A retry would do again what must not be done again, or lose what cannot be given back; the run stays as it was."""

    def __init__(self, run_id: str, why: str, instead: str) -> None:
        self.run_id = run_id
        self.why = why
        super().__init__(f'run "{run_id}" cannot be retried: {why}. {instead}')


class DeletionRefused(DurableError):
    """A run is open, or somebody still needs it; nothing was deleted."""

    def __init__(self, run_id: str, why: str, instead: str) -> None:
        self.run_id = run_id
        self.why = why
        super().__init__(f'run "{run_id}" cannot be deleted: {why}. {instead}')


class UpdateRejected(DurableError):
    """An update was refused: by a validator before it was stored, or by the run."""

    def __init__(self, run_id: str, name: str, reason: str) -> None:
        self.run_id = run_id
        self.name = name
        self.reason = reason
        super().__init__(f'update "{name}" of run "{run_id}" was rejected: {reason}')


class UpdateTimeout(DurableError, TimeoutError):
    """The answer to an update did not come in time; the update stays accepted."""

    def __init__(self, run_id: str, name: str, update_id: str, seconds: float) -> None:
        self.run_id = run_id
        self.name = name
        self.update_id = update_id
        super().__init__(
            f'update "{name}" of run "{run_id}" has no answer after {seconds:g} s. It stays accepted and may be answered later: '
            f'ask again by its id "{update_id}" instead of sending it anew.'
        )


class NotWaiting(DurableError, LookupError):
    """The run does not wait for this decision: it has not come to it, or is past it."""

    def __init__(self, run_id: str, what: str) -> None:
        self.run_id = run_id
        super().__init__(f'run "{run_id}" does not wait for {what}')


class NotAReviewer(DurableError):
    """Somebody else was asked to decide."""

    def __init__(self, run_id: str, review: str, reviewer: str, reviewers: Sequence[str]) -> None:
        self.run_id = run_id
        super().__init__(
            f'{reviewer!r} may not decide review "{review}" of run "{run_id}"; these may: {", ".join(reviewers) or "nobody"}'
        )


class QueueNotServed(DurableError, LookupError):
    """Workers asked for tasks of a queue that is none of its own."""

    def __init__(self, queue: str) -> None:
        super().__init__(
            f'"{queue}" has no queue of its own: its remote steps go to the deployment\'s own workers. Name it in '
            "DURABLE_STEPS_QUEUES to serve it from elsewhere."
        )


class InvalidToken(DurableError, ValueError):
    """A token of a task, callback or webhook was not made by this deployment for this purpose, or was changed."""

    def __init__(self) -> None:
        super().__init__(
            "the token is not valid here: it must be passed on exactly as it was received, to the deployment that made it, "
            "and for what it was made"
        )


class TokenExpired(DurableError):
    """A token of a task, callback or webhook was good, and its time is over."""

    def __init__(self, expired_at: float) -> None:
        self.expired_at = expired_at
        super().__init__(
            f"the token expired at {datetime.fromtimestamp(expired_at, UTC):%Y-%m-%d %H:%M:%S} UTC: its run does not wait any more"
        )


class BlobGone(DurableError, LookupError):
    """A blob is not in the blob store any more."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(
            f'the blob "{key}" is gone: the run that stored it has been deleted, or the bucket is another one'
        )


class IdempotencyKeySpent(DurableError):
    """The idempotency key started a run that has been deleted since."""

    def __init__(self, key: str, run_id: str) -> None:
        super().__init__(f'the idempotency key "{key}" started run "{run_id}", which has been deleted. Use a new key.')


class WorkflowNotRegistered(DurableError, LookupError):
    """No workflow of this name is registered in the app."""

    def __init__(self, name: str, known: str) -> None:
        super().__init__(f'there is no workflow "{name}"; registered: {known}')


# How a run that did not complete is reported


class RunCancelled(asyncio.CancelledError):
    """Raised into the pending operations of a run that is cancelled; like every CancelledError no Exception."""


class RunError(DurableError):
    """The run did not complete."""

    def __init__(self, run_id: str, message: str, error: ErrorInfo | None = None) -> None:
        self.run_id = run_id
        self.error = error
        super().__init__(f'run "{run_id}" {message}')


class RunFailed(RunError):
    """The workflow raised an error that it did not handle."""


class RunWasCancelled(RunError, RunCancelled):
    """The run was cancelled or terminated; `except RunCancelled` catches it too."""


class RunTimedOut(RunError):
    """The run reached its execution timeout."""


class RunDead(RunError):
    """The run was given up after invocations died, again and again, without a result."""


class RunBlocked(RunError):
    """The run needs new code or a person; nothing is lost."""


# Engine


class Fenced(DurableError):
    """Another invocation owns the run now; whatever this one still does must not count."""

    def __init__(self, run_id: str, epoch: int) -> None:
        super().__init__(f'run "{run_id}": epoch {epoch} no longer owns the run')


class StoreUnavailable(DurableError):
    """A service did not answer in time or refused for load; what was asked may or may not have happened."""


class RunSuspended(BaseException):
    """Unwinds workflow code while its run is being suspended; never an error, never to be caught.

    Plain code in `finally` runs at every suspension; operations called there raise this again and record nothing.
    """

    def __init__(self) -> None:
        super().__init__(
            "the run is being suspended; its code will be replayed later. Let this pass: catch Exception, not BaseException."
        )
