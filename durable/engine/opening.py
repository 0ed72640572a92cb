"""Turns a run record and its history into an execution of the deployed code."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from durable import codec
from durable.context import Context
from durable.engine.announcing import started_tags
from durable.errors import Misuse, UndecodableHistory
from durable.execution import Execution, RunInfo
from durable.model.links import Links

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from durable.app import App, Workflow
    from durable.engine.lease import Loaded
    from durable.model.run import Run
    from durable.ports import Ports


class PythonChanged(Misuse):
    """The run was begun under a Python whose asyncio schedules differently."""

    def __init__(self, recorded: str, current: str) -> None:
        super().__init__(
            f"the run was begun on Python {recorded} and the function now runs on {current}. Python 3.12 changed the order "
            "in which asyncio runs tasks, so this history cannot be replayed here. Deploy with the old runtime until the "
            "open runs have ended."
        )


def python_minor() -> str:
    """`3.12`: recorded with the run, because histories do not cross from 3.11 to later versions."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def begun(run: Run) -> float:
    """When the run's first turn was acquired, seconds since 1970."""
    return run.created_at if run.started_at is None else run.started_at


def links_of(ports: Ports, run: Run) -> Links:
    """What the run's tokens and addresses are made of."""
    return Links(
        run_id=run.id, born=run.born, cuts=run.cuts, keys=ports.signing.keys, public_url=ports.public_url,
        now=ports.clock.now,
    )  # fmt: skip


def open_execution(app: App, run: Run, loaded: Loaded, links: Links | None = None) -> Execution:
    """Raises a Misuse where the deployed code cannot take the run further; without `links` nobody can reach it."""
    workflow = app.find(run.workflow, run.version)
    if run.python is not None and (run.python == "3.11") != (python_minor() == "3.11"):
        raise PythonChanged(run.python, python_minor())
    started_at = begun(run)
    info = RunInfo(
        id=run.id, lineage=run.lineage or run.id, workflow=run.workflow, version=run.version,
        started_at=datetime.fromtimestamp(started_at, UTC), parent=run.parent, tags=started_tags(run),
        headers=MappingProxyType(dict(run.headers)),
    )  # fmt: skip
    return Execution(
        _program(workflow, run, loaded), info, history=loaded.entries, started_at=started_at, waits=run.waits,
        waits_digest=run.waits_digest, waited_for=_waited_for(run), links=links, app=app,
    )  # fmt: skip


def _waited_for(run: Run) -> str:
    """In words, as far as the record still says: the reason of a blocked run is another one."""
    return run.reason or "" if run.status == "suspended" else ", ".join(run.waiting_for)


def _program(workflow: Workflow[Any, Any], run: Run, loaded: Loaded) -> Callable[[Execution], Coroutine[Any, Any, Any]]:
    if not workflow.takes_input:
        return lambda execution: workflow.fn(Context(execution))
    text = loaded.payloads.get("input") if run.input_stored else run.input
    try:
        value = codec.decode(text, workflow.input_type)
    except ValidationError as error:
        raise UndecodableHistory("input", codec.type_name(workflow.input_type), codec.reason_of(error)) from None
    return lambda execution: workflow.fn(Context(execution), value)
