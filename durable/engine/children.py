"""Children of a run: started, waited for, and told to end with it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from durable import codec, failures
from durable.errors import RunAlreadyExists
from durable.model.ending import Ended
from durable.model.envelope import Start, Wake
from durable.model.location import digest
from durable.model.message import StoredMessage
from durable.model.run import Watcher, pending_run
from durable.ops.child import child_start_from
from durable.ports import Created, Exists, KeyTaken

if TYPE_CHECKING:
    from durable.model.entry import Entry
    from durable.model.run import CloseMode, Run
    from durable.ops.child import ChildStart
    from durable.ports import Ports


def start_child(ports: Ports, parent: Run, entry: Entry) -> StoredMessage | None:
    """Starts the child that the entry records, or waits with others for a run of its id. Twice is once.

    Gives a message for the parent where no end of the child would bring one: it has ended, or is not ours to wait for.
    """
    return _start(ports, parent, child_start_from(entry.value))


def _start(ports: Ports, parent: Run, start: ChildStart) -> StoredMessage | None:
    answer, digest_of_input = _create(ports, parent, start)
    match answer:
        case Created(child):
            ports.runs.send(Start(run_id=child.id, id=ports.new_id()))
            return None
        case Exists(child):
            return _existing(ports, parent, start, child, digest_of_input)
        case KeyTaken():
            raise AssertionError("a child is started without an idempotency key")
        case _:
            assert_never(answer)


def _create(ports: Ports, parent: Run, start: ChildStart) -> tuple[Created | Exists | KeyTaken, str]:
    run, stored_input = pending_run(
        id=start.id, workflow=start.workflow, version=start.version, input=start.input,
        input_digest=codec.digest(start.input), writer=ports.new_id(), now=ports.clock.now(), tags=start.tags,
        parent=parent.id, parent_location=start.location or None, headers=parent.headers, lane=start.lane,
    )  # fmt: skip
    return ports.store.create(run, input=stored_input), run.input_digest


def _existing(ports: Ports, parent: Run, start: ChildStart, child: Run, input_digest: str) -> StoredMessage | None:
    ours = _is_ours(parent, start, child)
    if start.location and not ours and (child.workflow, child.input_digest) != (start.workflow, input_digest):
        return _message(ports, start, f"taken:{start.id}:{digest(start.location, 'child')}", _refused(start))
    if child.status == "pending" and child.started_at is None:
        ports.runs.send(Start(run_id=child.id, id=ports.new_id()))  # the envelope of the first start may be lost
    if not start.location:
        return None
    if ours and child.ended and start.again is not None:
        if child.status != "completed":
            return _start(ports, parent, replace(start, id=start.again, again=None))
        return _message(ports, start, end_message_id(child, start.location), how_it_ended(ports, child))
    if ours:
        return None
    watched = watch(ports, child, Watcher(parent.id, start.location))
    if not watched.ended:
        return None
    return _message(ports, start, end_message_id(watched, start.location), how_it_ended(ports, watched))


def _is_ours(parent: Run, start: ChildStart, child: Run) -> bool:
    """Whether it was started by this very operation: a run of the same id may have been there before."""
    return (child.parent, child.parent_location) == (parent.id, start.location or None)


def watch(ports: Ports, run: Run, watcher: Watcher) -> Run:
    """Waits for the end of a run with others; of one that was continued, for that of the last of its lineage."""
    while True:
        seen = ports.store.watch(run.id, run.lineage or run.id, watcher)
        if seen is None:
            return run  # it has just been deleted: what it was when we looked
        if seen.successor is None:
            return seen
        following = ports.store.get(seen.successor)
        if following is None:
            return seen
        run = following


def how_it_ended(ports: Ports, run: Run) -> Ended:
    """What is told of the end of a run."""
    output, error = run.output, run.error
    if run.output_stored:
        text = ports.store.get_payload(run.id, "output", epoch=run.epoch)
        output, error = (text, None) if run.status == "completed" else (None, failures.error_from(text))
    if error is None and run.status != "completed":
        error = failures.ended_without_error(run.status, run.reason)
    return Ended(run_id=run.id, lineage=run.lineage or run.id, status=run.status, output=output, error=error)


def end_message_id(run: Run, location: str) -> str:
    """The id of the message about this end of the run; another one after a retry."""
    return f"end:{run.id}:{run.epoch}:{digest(location, 'child')}"


def close_started(ports: Ports, parent: Run, start: ChildStart, mode: CloseMode) -> None:
    """Asks a child to end that its parent has recorded. Where it does not exist, it does from now on, and never begins.

    Otherwise an invocation that had lost the parent, and stood still before it started the child, would start it now. A run
    that was there before, and that the parent only waits for, is left alone: it is somebody else's.
    """
    child = ports.store.get(start.id)
    if child is None:
        _create(ports, parent, start)
        child = ports.store.get(start.id)
    if child is None or not _is_ours(parent, start, child):
        return
    if child.ended and child.status != "completed" and start.again is not None:
        close_started(ports, parent, replace(start, id=start.again, again=None), mode)
        return
    close_child(ports, start.id, mode)


def close_child(ports: Ports, child: str, mode: CloseMode) -> bool:
    """Asks a child to end; False if there is none. It does so in a turn of its own."""
    store, now = ports.store, ports.clock.now()
    run = store.get(child)
    while run is not None and run.successor is not None:
        run = store.get(run.successor)
    if run is None or run.ended:
        return run is not None
    if mode == "terminate":
        store.terminate(run.id, now=now, reason="its parent was terminated")
    else:
        store.request_cancel(run.id, mode=mode, now=now)
    ports.runs.send(Wake(run_id=run.id, id=ports.new_id(), reason="closed by its parent"))
    return True


def _message(ports: Ports, start: ChildStart, id: str, end: Ended) -> StoredMessage:
    return StoredMessage(id=id, name=start.location, kind="child", body=end.to_text(), arrived_at=ports.clock.now())


def _refused(start: ChildStart) -> Ended:
    error = failures.record(RunAlreadyExists(start.id))
    return Ended(run_id=start.id, lineage=start.id, status="failed", error=error)
