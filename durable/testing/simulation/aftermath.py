"""What happens when somebody still wakes a run that has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from durable.engine.orchestrator import Delivery, Orchestrator
from durable.model.envelope import Wake, to_body
from durable.testing.interception import intercepted
from durable.testing.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from durable.app import App
    from durable.ports import Ports


def check_wake_of_ended_run(app: App[Any], ports: Ports, run_id: str) -> None:
    """I8: it costs one request and does nothing."""
    calls: list[str] = []

    def listening(name: str, perform: Callable[[], Any]) -> Any:
        calls.append(name)
        return perform()

    wake = to_body(Wake(run_id=run_id, id="late", reason="simulated"))
    orchestrator = Orchestrator(app, intercepted(ports, listening), code_version="1")
    orchestrator.process([Delivery(id="late", body=wake, arrived_at=ports.clock.now())], remaining=60)
    if calls != ["store.acquire"]:
        raise Violation(f"I8: a wake of an ended run made the calls {calls}")
