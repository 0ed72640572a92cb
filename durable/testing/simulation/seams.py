"""The seam around every port of simulated invocations; it also tells what a call is about."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from durable.model.run import Run
from durable.ports import Blobs, RunQueue, StepQueue, Store, Timers
from durable.testing.interception import methods_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from durable.ports import Ports


@dataclass(frozen=True, slots=True)
class PortCall:
    """A call that an invocation is about to make."""

    name: str
    """ "store.settle", "runs.send" ..."""
    perform: Callable[[], Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def run_id(self) -> str | None:
        """The run whose partition it reads or writes, where it is about one."""
        if not self.name.startswith("store.") or not self.args:
            return None
        about = self.args[0]
        if isinstance(about, Run):
            return about.id
        return about if isinstance(about, str) else None


class _Port:
    """Has the methods of a port, each passing through the interceptor."""

    def __init__(self, name: str, protocol: type[Any], port: Any, interceptor: Callable[[PortCall], Any]) -> None:
        for method in methods_of(protocol):
            setattr(self, method, _through(interceptor, f"{name}.{method}", getattr(port, method)))


def _through(interceptor: Callable[[PortCall], Any], name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return interceptor(PortCall(name, lambda: method(*args, **kwargs), args, kwargs))

    return call


def told_of_calls(ports: Ports, interceptor: Callable[[PortCall], Any]) -> Ports:
    """The same ports with every effect passing through `interceptor`."""
    return replace(
        ports,
        store=cast("Store", _Port("store", Store, ports.store, interceptor)),
        runs=cast("RunQueue", _Port("runs", RunQueue, ports.runs, interceptor)),
        timers=cast("Timers", _Port("timers", Timers, ports.timers, interceptor)),
        blobs=cast("Blobs", _Port("blobs", Blobs, ports.blobs, interceptor)),
        steps=cast("StepQueue", _Port("steps", StepQueue, ports.steps, interceptor)),
    )
