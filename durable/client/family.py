"""The children of a run, as its history names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable.client import reading
from durable.ops.child import child_start_from, lives_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.ports import Ports


def children(ports: Ports, run_id: str) -> Sequence[str]:
    """Ids, in the order of the starts; of a child that a retry started anew both."""
    run = ports.store.get(run_id)
    cuts = () if run is None else run.cuts
    ids: list[str] = []
    for entry in reading.history(ports, run_id):
        if entry.error is None and (entry.kind == "start" or (entry.kind == "child" and entry.mark.startswith("?"))):
            lives = lives_of(child_start_from(entry.value).id, cuts)
            ids += [child for child in lives if child not in ids and ports.store.get(child) is not None]
    return ids
