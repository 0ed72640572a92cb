"""One seam around every port: whoever counts, fails, delays or kills port calls does it here and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from durable.ports import Blobs, RunQueue, StepQueue, Store, Timers

if TYPE_CHECKING:
    from collections.abc import Callable

    from durable.ports import Ports


class Interceptor(Protocol):
    """Stands between the engine and its ports."""

    def __call__(self, name: str, perform: Callable[[], Any], /) -> Any:
        """Gives `perform()`, or raises; `name` is "store.settle", "runs.send", "timers.arm" ..."""
        ...


def methods_of(port: type[Any]) -> list[str]:
    """The public methods that a protocol declares."""
    return [name for name, member in vars(port).items() if callable(member) and not name.startswith("_")]


class _InterceptedPort:
    """Has the methods of a port, each passing through the interceptor."""

    def __init__(self, name: str, protocol: type[Any], port: Any, interceptor: Interceptor) -> None:
        for method in methods_of(protocol):
            setattr(self, method, _through(interceptor, f"{name}.{method}", port, method))


def _through(interceptor: Interceptor, name: str, port: Any, method: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return interceptor(name, lambda: getattr(port, method)(*args, **kwargs))

    return call


def intercepted(ports: Ports, interceptor: Interceptor) -> Ports:
    """The same ports with every effect passing through `interceptor`; clock and ids are no effects."""
    return replace(
        ports,
        store=cast("Store", _InterceptedPort("store", Store, ports.store, interceptor)),
        runs=cast("RunQueue", _InterceptedPort("runs", RunQueue, ports.runs, interceptor)),
        timers=cast("Timers", _InterceptedPort("timers", Timers, ports.timers, interceptor)),
        blobs=cast("Blobs", _InterceptedPort("blobs", Blobs, ports.blobs, interceptor)),
        steps=cast("StepQueue", _InterceptedPort("steps", StepQueue, ports.steps, interceptor)),
    )


CALL_NAMES = frozenset(
    f"{name}.{method}"
    for name, protocol in (
        ("store", Store),
        ("runs", RunQueue),
        ("timers", Timers),
        ("blobs", Blobs),
        ("steps", StepQueue),
    )
    for method in methods_of(protocol)
)
"""Every name that an interceptor can be given."""
