"""The app: the registry of workflows, and the services that their steps use."""

# ruff: noqa: ARG002 - what is declared for later ignores its arguments

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, overload

from typing_extensions import TypeVar

from durable import codec
from durable.channels import Event
from durable.definitions import Cron, RemoteStep, Singleton, Workflow, shape_of
from durable.errors import UnknownWorkflow, WorkflowNotRegistered
from durable.model.duration import Duration, optional_seconds, seconds
from durable.model.ids import check_name
from durable.model.tags import check_tags
from durable.options import RETRIES, Batch, Rate, count
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


class WorkflowDecorator(Protocol):
    """What `@app.workflow(...)` gives."""

    @overload
    def __call__(self, fn: Callable[[Context], Coroutine[Any, Any, R]], /) -> Workflow[None, R]: ...
    @overload
    def __call__(self, fn: Callable[[Context, I], Coroutine[Any, Any, R]], /) -> Workflow[I, R]: ...


class RemoteStepDecorator(Protocol):
    """What `@app.remote_step(...)` gives."""

    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> RemoteStep[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> RemoteStep[P, R]: ...


class EntityDecorator(Protocol):
    """What `@app.entity(...)` gives."""

    def __call__(self, cls: C_E, /) -> C_E: ...


class App(Generic[S]):
    """Registers workflows and all that belongs to them; `services` builds what their steps use, once per process."""

    @overload
    def __init__(self: App[None], name: str) -> None: ...
    @overload
    def __init__(self, name: str, *, services: Callable[[], S]) -> None: ...
    def __init__(self, name: str, *, services: Callable[[], Any] | None = None) -> None:
        self.name = check_name("app name", name)
        self._workflows: dict[str, dict[str, Workflow[Any, Any]]] = {}
        self._remote_steps: dict[str, RemoteStep[..., Any]] = {}
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
                    self._built.append(self._build_services() if self._build_services is not None else None)  # type: ignore[arg-type]
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
        retention: Duration | None = None,
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
        retention: Duration | None = None,
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
            retention: How long ended runs are kept.
            singleton: Mutual exclusion of runs by a key of their input.
            max_entries: Ceiling of a run's history.
        """
        if singleton is not None:
            not_available("@app.workflow(singleton=...)")
        if max_entries is not None:
            not_available("@app.workflow(max_entries=...)")

        def register(fn: Callable[..., Any]) -> Workflow[Any, Any]:
            shape = shape_of(fn, _names_around(fn))
            return self._add(
                Workflow[Any, Any](
                    name=check_name("workflow name", name or fn.__name__),
                    version=check_name("workflow version", version),
                    fn=fn,
                    takes_input=shape.takes_input,
                    input_type=shape.input_type,
                    output_type=shape.output_type,
                    tags=check_tags(tags),
                    timeout=optional_seconds(timeout, "@app.workflow(timeout=...)", minimum=1.0),
                    retention=optional_seconds(retention, "@app.workflow(retention=...)", minimum=1.0),
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
        found = self._workflows.get(name, {}).get(version)
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
                output_type=codec.return_type(fn, names=_names_around(fn)),
                queue=check_name("queue name", queue),
                retries=count("@app.remote_step(retries=...)", retries),
                timeout=seconds(timeout, "@app.remote_step(timeout=...)", minimum=0.001),
                heartbeat=optional_seconds(heartbeat, "@app.remote_step(heartbeat=...)", minimum=0.001),
            )
            if remote.name in self._remote_steps:
                raise ValueError(f'remote step "{remote.name}" is registered twice. Give one of them another name=.')
            self._remote_steps[remote.name] = remote
            return remote

        return register if fn is None else register(fn)

    @property
    def remote_steps(self) -> Mapping[str, RemoteStep[..., Any]]:
        """Every registered remote step, by name."""
        return self._remote_steps

    # Declared for later: see durable/pending.py

    @overload
    def entity(self, cls: C_E, /) -> C_E: ...
    @overload
    def entity(
        self, /, *, name: str | None = None, version: int = 1, migrate: Callable[[Any], Any] | None = None
    ) -> EntityDecorator: ...
    def entity(self, cls: Any = None, /, **_options: Any) -> Any:
        """Registers a model as an entity: state and operations, one instance per key."""
        not_available("app.entity")

    @overload
    def schedule(self, name: str, when: Cron, workflow: Workflow[None, Any], /) -> None: ...
    @overload
    def schedule(self, name: str, when: Cron, workflow: Workflow[I, Any], input: I, /) -> None: ...
    def schedule(self, name: str, when: Cron, workflow: Workflow[Any, Any], /, *_input: Any) -> None:
        """Starts a run of the workflow at every occurrence."""
        not_available("app.schedule")

    def on_event(
        self,
        event: Event[T],
        workflow: Workflow[T, Any],
        /,
        *,
        debounce: Duration | None = None,
        batch: Batch | None = None,
    ) -> None:
        """Starts a run of the workflow for every event."""
        not_available("app.on_event")

    def queue(
        self, name: str, *, concurrency: int | None = None, rate: Rate | None = None, key: str | None = None
    ) -> None:
        """Limits what a queue of remote steps does at a time."""
        not_available("app.queue")


def _names_around(fn: Callable[..., Any]) -> Mapping[str, Any]:
    """The local names where a local function is being registered: its annotations may name classes among them."""
    if "<locals>" not in fn.__qualname__:
        return {}
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals is globals():
        frame = frame.f_back
    return {} if frame is None else frame.f_locals


def _version_order(version: str) -> tuple[tuple[int, int, str], ...]:
    parts = re.findall(r"\d+|[^\d.]+", version)
    return tuple((1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts)
