"""Runs that a message brings along: created where there is none, so that start and message are one intention.

The message is stored first, then the run is looked for, and only where it is missing it is created: a message to a run that
exists costs nothing more than any other. A crash in between is mended by the queue, which delivers the same again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable import codec
from durable.model.run import pending_run

if TYPE_CHECKING:
    from durable.model.envelope import StartSpec
    from durable.ports import Ports


def create(ports: Ports, run_id: str, spec: StartSpec) -> None:
    """Creates the run; one that somebody else has created meanwhile will do."""
    run, stored_input = pending_run(
        id=run_id, workflow=spec.workflow, version=spec.version, input=spec.input,
        input_digest=codec.digest(spec.input), writer=ports.new_id(), now=ports.clock.now(), tags=spec.tags,
        headers=spec.headers, lane=spec.lane,
    )  # fmt: skip
    ports.store.create(run, input=stored_input)
