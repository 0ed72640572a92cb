"""Warm processes of the orchestrator and of the remote steps, which can be killed at any of their port calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from durable.adapters.texts import with_texts
from durable.engine.orchestrator import Orchestrator
from durable.engine.worker import RemoteWorker
from durable.testing.faults import Invocation, InvocationKilled
from durable.testing.interception import intercepted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from durable.app import App
    from durable.engine.options import EngineOptions
    from durable.engine.orchestrator import Delivery
    from durable.engine.steps import StepRunner
    from durable.model.delivery import TaskDelivery
    from durable.ports import Ports

    Perform = Callable[[Invocation, str, Callable[[], Any]], Any]


class _Container:
    """Serves one invocation after another, as long as none of them dies."""

    def __init__(self, code_version: str, perform: Perform) -> None:
        self.code_version = code_version
        self._perform = perform
        self._invocation = Invocation()

    def _seen(self, app: App, ports: Ports) -> Ports:
        """The ports as the process sees them: it can be killed at any call."""
        return with_texts(intercepted(ports, self._port_call), app.codec)

    def _invoke(self, process: Callable[[], Sequence[str]]) -> Sequence[str]:
        self._invocation = Invocation()
        failed = process()
        if self._invocation.killed:
            raise InvocationKilled
        return failed

    def _port_call(self, name: str, perform: Callable[[], Any]) -> Any:
        return self._perform(self._invocation, name, perform)


class Container(_Container):
    """An orchestrator."""

    def __init__(
        self, app: App, ports: Ports, *, code_version: str, options: EngineOptions, steps: Callable[[], StepRunner],
        perform: Perform,
    ) -> None:  # fmt: skip
        super().__init__(code_version, perform)
        self._orchestrator = Orchestrator(
            app, self._seen(app, ports), code_version=code_version, options=options, steps=steps
        )

    def process(self, deliveries: Sequence[Delivery], *, remaining: float) -> Sequence[str]:
        """Ids of the deliveries that failed; raises `InvocationKilled` where the process died."""
        return self._invoke(lambda: self._orchestrator.process(deliveries, remaining=remaining))


class WorkerContainer(_Container):
    """A function of remote steps."""

    def __init__(
        self, app: App, ports: Ports, *, code_version: str, options: EngineOptions, steps: Callable[[], StepRunner],
        perform: Perform,
    ) -> None:  # fmt: skip
        super().__init__(code_version, perform)
        self._worker = RemoteWorker(app, self._seen(app, ports), name=code_version, options=options, steps=steps)

    def process(self, deliveries: Sequence[TaskDelivery], *, remaining: float) -> Sequence[str]:
        """Ids of the deliveries that failed; raises `InvocationKilled` where the process died."""
        return self._invoke(lambda: self._worker.process(deliveries, remaining=remaining))
