"""The app: the registry of workflows, and the services that their steps use."""

# ruff: noqa: ARG002 - what is declared for later ignores its arguments

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, overload

from typing_extensions import TypeVar

from durable import codec
from durable.context.entities import serving
from durable.context.registering import Triggers
from durable.decorators import EntityDecorator, RemoteStepDecorator, WorkflowDecorator, module_around, names_around
from durable.definitions import Cron, RemoteStep, Singleton, Workflow, shape_of
from durable.entities import VERSION_OF_WORKFLOW, define
from durable.errors import UnknownWorkflow, WorkflowNotRegistered
from durable.flow import FlowQueue, check_queue_of, check_singleton, flow_queue
from durable.model.duration import Duration, optional_seconds, seconds
from durable.model.entity import workflow_of
from durable.model.ids import check_name
from durable.model.lane import Order
from durable.model.packages import Packages
from durable.model.retention import Retention, kept_by_ending
from durable.model.stored import PayloadCodec
from durable.model.tags import check_tags
from durable.options import RETRIES, Rate, count
from durable.pending import not_available
from durable.propagation import Carrier, Carriers

if TYPE_CHECKING:
    from durable.context import Context

P = ParamSpec("P")
T = TypeVar("T")
I = TypeVar("I")  # noqa: E741 - the name that readers of the signatures expect
R = TypeVar("R")
S = TypeVar("S", default=None)
C_E = TypeVar("C_E", bound=type[Any])
C_C = TypeVar("C_C", bound=Carrier)


class App(Triggers, Generic[S]):
    """Registers workflows and all that belongs to them; `services` builds what their steps use, once per process."""

    @overload
    def __init__(
        self: App[None], name: str, *, packages: Sequence[str] = (), codec: PayloadCodec | None = None
    ) -> None: ...
    @overload
    def __init__(
        self, name: str, *, services: Callable[[], S], packages: Sequence[str] = (), codec: PayloadCodec | None = None
    ) -> None: ...
    def __init__(
        self, name: str, *, services: Callable[[], Any] | None = None, packages: Sequence[str] = (),
        codec: PayloadCodec | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.name = check_name("app name", name)
        self.codec = codec
        """Seals what runs store and send; None leaves it readable."""
        self.packages = Packages([*packages, module_around(globals())])
        """Where functions that undo steps may be: `packages`, and those that the app and what it registers are in."""
        self._workflows: dict[str, dict[str, Workflow[Any, Any]]] = {}
        self._remote_steps: dict[str, RemoteStep[..., Any]] = {}
        self._queues: dict[str, FlowQueue] = {}
        self.carriers = Carriers()
        """What is carried from where a run is started to where its steps run: see `propagate`."""
        self._build_services = services
        self._built: list[S] = []
        self._building = threading.Lock()

    @property
    def services(self) -> S:
        """What the factory built; it is called once, by the first step that asks."""
        if not self._built:
            with self._building:
                if not self._built:
                    self._built.append(self._build_services() if self._build_services is not None else None)  # type: ignore[arg-type] - then S is None
        return self._built[0]

    def propagate(self, carrier: C_C, /) -> C_C:
        """Registers a pair of functions, `capture` and `restore`: see `durable.propagation.Carrier`."""
        self.carriers.add(carrier)
        return carrier

    # Workflows

    @overload
    def workflow(self, fn: Callable[[Context], Coroutine[Any, Any, R]], /) -> Workflow[None, R]: ...
    @overload
    def workflow(self, fn: Callable[[Context, I], Coroutine[Any, Any, R]], /) -> Workflow[I, R]: ...
    @overload
    def workflow(
        self,
        /,
        *,
        name: str | None = None,
        version: str = "1",
        tags: Sequence[str] = (),
        timeout: Duration | None = None,
        retention: Retention | None = None,
        singleton: Singleton | None = None,
        max_entries: int | None = None,
    ) -> WorkflowDecorator: ...
    def workflow(
        self,
        fn: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        version: str = "1",
        tags: Sequence[str] = (),
        timeout: Duration | None = None,
        retention: Retention | None = None,
        singleton: Singleton | None = None,
        max_entries: int | None = None,
    ) -> Any:
        """Registers a workflow: an `async def` that takes the context and at most one input.

        Several versions of one name live side by side: a run keeps the version that it started on, and new runs take
        the newest ("10" is newer than "9", "2.1" newer than "2").

        Args:
            fn: The function, where the decorator is used without parentheses.
            name: The function's own name, if none is given.
            version: Change it when runs under way could not go on with the new code.
            tags: Given to every run.
            timeout: Time for the whole run, counted from its first turn.
            retention: How long ended runs are kept: "90 days", or by ending, `{"completed": "30 days"}`. For good if left out.
            singleton: Mutual exclusion of runs by a key of their input.
            max_entries: Ceiling of a run's history, 50,000 if none is given: at it the run is blocked, at a tenth of it
                a warning is logged.
        """
        if max_entries is not None:
            count("@app.workflow(max_entries=...)", max_entries, minimum=1)

        def register(fn: Callable[..., Any]) -> Workflow[Any, Any]:
            shape = shape_of(fn, names_around(fn, globals()))
            self.packages.add(fn)
            called = check_name("workflow name", name or fn.__name__)
            if singleton is not None:
                check_singleton(called, singleton, takes_input=shape.takes_input, input_type=shape.input_type)
            return self._add(
                Workflow[Any, Any](
                    name=called,
                    version=check_name("workflow version", version),
                    fn=fn,
                    takes_input=shape.takes_input,
                    input_type=shape.input_type,
                    output_type=shape.output_type,
                    tags=check_tags(tags),
                    timeout=optional_seconds(timeout, "@app.workflow(timeout=...)", minimum=1.0),
                    retention=kept_by_ending(retention, "@app.workflow(retention=...)"),
                    singleton=singleton,
                    max_entries=max_entries,
                )
            )

        return register if fn is None else register(fn)

    @property
    def workflows(self) -> tuple[Workflow[Any, Any], ...]:
        """Every registered workflow, by name and then from the oldest version to the newest."""
        return tuple(
            versions[version]
            for _, versions in sorted(self._workflows.items())
            for version in sorted(versions, key=_version_order)
        )

    def find(self, name: str, version: str) -> Workflow[Any, Any]:
        """The workflow that a run was started on; raises UnknownWorkflow if this code does not have it."""
        found = self._workflows.get(name, {}).get(version) or self.collectors.get(name)
        if found is None:
            known = ", ".join(f"{w.name} {w.version}" for w in self.workflows if w.name == name) or self._known()
            raise UnknownWorkflow(name, version, known)
        return found

    def newest(self, name: str) -> Workflow[Any, Any]:
        """The version that new runs take; raises WorkflowNotRegistered."""
        versions = self._workflows.get(name)
        if not versions:
            raise WorkflowNotRegistered(name, self._known())
        return versions[max(versions, key=_version_order)]

    def _add(self, workflow: Workflow[Any, Any]) -> Workflow[Any, Any]:
        versions = self._workflows.setdefault(workflow.name, {})
        if workflow.version in versions:
            raise ValueError(
                f'workflow "{workflow.name}" version "{workflow.version}" is registered twice. Give the new one another '
                "version=, or another name=."
            )
        versions[workflow.version] = workflow
        return workflow

    def _known(self) -> str:
        return ", ".join(sorted(self._workflows)) or "none"

    # Remote steps

    @overload
    def remote_step(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> RemoteStep[P, R]: ...
    @overload
    def remote_step(self, fn: Callable[P, R], /) -> RemoteStep[P, R]: ...
    @overload
    def remote_step(
        self,
        /,
        *,
        name: str | None = None,
        queue: str = "default",
        retries: int = RETRIES,
        timeout: Duration = "5m",
        heartbeat: Duration | None = None,
    ) -> RemoteStepDecorator: ...
    def remote_step(
        self,
        fn: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        queue: str = "default",
        retries: int = RETRIES,
        timeout: Duration = "5m",
        heartbeat: Duration | None = None,
    ) -> Any:
        """Registers a step that another function or process performs; `ctx.call` asks for it.

        Args:
            fn: The function, where the decorator is used without parentheses.
            name: The function's own name, if none is given.
            queue: Who performs it.
            retries: Further attempts after the first.
            timeout: Time for one attempt.
            heartbeat: Longest silence of an attempt.
        """

        def register(fn: Callable[..., Any]) -> RemoteStep[..., Any]:
            remote = RemoteStep[..., Any](
                name=check_name("remote step name", name or fn.__name__),
                fn=fn,
                output_type=codec.return_type(fn, names=names_around(fn, globals())),
                queue=check_name("queue name", queue),
                retries=count("@app.remote_step(retries=...)", retries),
                timeout=seconds(timeout, "@app.remote_step(timeout=...)", minimum=0.001),
                heartbeat=optional_seconds(heartbeat, "@app.remote_step(heartbeat=...)", minimum=0.001),
            )
            if remote.name in self._remote_steps:
                raise ValueError(f'remote step "{remote.name}" is registered twice. Give one of them another name=.')
            if remote.queue in self._queues:
                check_queue_of(self._queues[remote.queue], remote)
            self._remote_steps[remote.name] = remote
            self.packages.add(fn)
            return remote

        return register if fn is None else register(fn)

    @property
    def remote_steps(self) -> Mapping[str, RemoteStep[..., Any]]:
        """Every registered remote step, by name."""
        return self._remote_steps

    # Flow control

    def queue(
        self,
        name: str,
        *,
        concurrency: int | None = None,
        rate: Rate | None = None,
        key: str | None = None,
        order: Order = "fifo",
        fairness: Literal["key"] | None = None,
    ) -> None:
        """Limits what the remote steps of a queue do at a time, wherever they are called from.

        Whoever is next: the higher `Call(priority=...)`, then fairness, then arrival.

        Args:
            name: The queue, as `@app.remote_step(queue=...)` and `Call(queue=...)` name it.
            concurrency: Attempts under way at a time, at most 1,000.
            rate: Attempts begun in a time; after a pause as many at once.
            key: A path into the call's first argument ("customer.id"): the limits hold for each value of it.
            order: "lifo" serves the latest first.
            fairness: "key": the limits hold for all values together, which take turns.

        Raises:
            ValueError: The options contradict each other, or the first argument of a remote step has nothing at the key.
        """
        if name in self._queues:
            raise ValueError(f'queue "{name}" is declared twice')
        queue = flow_queue(name, concurrency=concurrency, rate=rate, key=key, order=order, fairness=fairness)
        for step in self._remote_steps.values():
            if step.queue == name:
                check_queue_of(queue, step)
        self._queues[name] = queue

    @property
    def queues(self) -> Mapping[str, FlowQueue]:
        """Every queue that is limited, by name."""
        return self._queues

    # Entities

    @overload
    def entity(self, cls: C_E, /) -> C_E: ...
    @overload
    def entity(
        self, /, *, name: str | None = None, version: int = 1, migrate: Callable[[Any], Any] | None = None
    ) -> EntityDecorator: ...
    def entity(
        self,
        cls: Any = None,
        /,
        *,
        name: str | None = None,
        version: int = 1,
        migrate: Callable[[Any], Any] | None = None,
    ) -> Any:
        """Registers a pydantic model as an entity: its fields are the state of each key, its public methods the operations.

        Args:
            cls: The class, where the decorator is used without parentheses; it is given back as it is.
            name: The class's own name, if none is given. Letters, digits and _ . - only.
            version: Raise it when the state that is kept does not fit the class any more.
            migrate: Makes a state of an older version, JSON data, into one of this: an instance, or data that fits.

        Raises:
            TypeError: A field has no default, or a method cannot be an operation.
        """

        def register(cls: Any) -> Any:
            definition = define(cls, name=name, version=version, migrate=migrate, names=names_around(cls, globals()))
            self.packages.add(cls)
            self._add(
                Workflow[Any, Any](
                    name=workflow_of(definition.name),
                    version=VERSION_OF_WORKFLOW,
                    fn=serving(definition),
                    takes_input=True,
                    input_type=str,
                    output_type=type(None),
                )
            )
            return cls

        return register if cls is None else register(cls)

    # Declared for later: see durable/pending.py

    @overload
    def schedule(self, name: str, when: Cron, workflow: Workflow[None, Any], /) -> None: ...
    @overload
    def schedule(self, name: str, when: Cron, workflow: Workflow[I, Any], input: I, /) -> None: ...
    def schedule(self, name: str, when: Cron, workflow: Workflow[Any, Any], /, *_input: Any) -> None:
        """Starts a run of the workflow at every occurrence."""
        not_available("app.schedule")


def _version_order(version: str) -> tuple[tuple[int, int, str], ...]:
    parts = re.findall(r"\d+|[^\d.]+", version)
    return tuple((1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts)
