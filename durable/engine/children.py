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
from durable.ops.child import DECISION, child_start_from, lives_of
from durable.ports import Created, Exists, KeyTaken
from durable.records import last_of_lineage

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
    if ours and start.again is not None:
        return _after_retry(ports, parent, start)
    itself = (child.lineage or child.id) == (parent.lineage or parent.id)
    if start.location and (itself or (child.workflow, child.input_digest) != (start.workflow, input_digest)):
        return _message(ports, start, f"taken:{start.id}:{digest(start.location, 'child')}", _refused(start))
    if child.status == "pending" and child.started_at is None:
        ports.runs.send(Start(run_id=child.id, id=ports.new_id()))  # the envelope of the first start may be lost
    if not start.location:
        return None
    last = last_of_lineage(ports, child.id) if ours else watch(ports, child, Watcher(parent.id, start.location))
    return _end_of(ports, start, last) if last is not None and last.ended else None


def _after_retry(ports: Ports, parent: Run, start: ChildStart) -> StoredMessage:
    """Tells the parent which run counts from now on: messages about others are there, or will come.

    Of the same input, one that has completed is adopted, and one that goes on is waited for. What has failed, or was asked
    to end with the parent, is started anew.
    """
    assert start.again is not None
    life = _latest(ports, parent, start)
    wanted = (start.workflow, codec.digest(start.input))
    if life is not None and (life.workflow, life.input_digest) == wanted:
        last = last_of_lineage(ports, life.id) or life
        if last.status == "completed":
            return _decision(ports, start, how_it_ended(ports, last))
        if not last.ended and last.cancel_requested is None:
            return _decision(ports, start, Ended(run_id=life.id, lineage=start.id, status="pending"))
    ended = _start(ports, parent, replace(start, id=start.again, again=None))
    if ended is not None:
        return replace(ended, id=_decision_id(start))
    return _decision(ports, start, Ended(run_id=start.again, lineage=start.id, status="pending"))


def revive(ports: Ports, parent: Run, entry: Entry) -> StoredMessage | None:
    """Starts a child anew that had ended with its parent, after the parent was retried. Twice is once."""
    start = child_start_from(entry.value)
    life = _latest(ports, parent, start)
    if start.close != "cancel" or not start.location or life is None or not _is_ours(parent, start, life):
        return None
    last = last_of_lineage(ports, life.id) or life
    if last.ended and last.status != "cancelled":
        return None  # it has come to its end by itself, and the parent was told
    return _after_retry(ports, parent, replace(start, again=lives_of(start.id, parent.cuts)[-1]))


def _latest(ports: Ports, parent: Run, start: ChildStart) -> Run | None:
    """The run that was last started for the child, be it by a retry."""
    lives = map(ports.store.get, reversed(lives_of(start.id, parent.cuts)))
    return next((run for run in lives if run is not None), None)


def _end_of(ports: Ports, start: ChildStart, run: Run) -> StoredMessage:
    return _message(ports, start, end_message_id(run, start.location), how_it_ended(ports, run))


def _decision(ports: Ports, start: ChildStart, end: Ended) -> StoredMessage:
    return _message(ports, start, _decision_id(start), end)


def _decision_id(start: ChildStart) -> str:
    return f"{DECISION}{start.again}:{digest(start.location, 'child')}"


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
    if child.ended and child.status != "completed" and start.again is not None and ports.store.get(start.again) is None:
        _create(ports, parent, replace(start, id=start.again, again=None))
    for life in lives_of(start.id, parent.cuts):
        close_child(ports, life, mode)


def close_child(ports: Ports, child: str, mode: CloseMode) -> None:
    """Asks a child to end, if there is one that has not; it does so in a turn of its own."""
    store, now = ports.store, ports.clock.now()
    run = last_of_lineage(ports, child)
    if run is None or run.ended:
        return
    if mode == "terminate":
        store.terminate(run.id, now=now, reason="its parent was terminated")
    else:
        store.request_cancel(run.id, mode=mode, now=now)
    ports.runs.send(Wake(run_id=run.id, id=ports.new_id(), reason="closed by its parent"))


def _message(ports: Ports, start: ChildStart, id: str, end: Ended) -> StoredMessage:
    return StoredMessage(id=id, name=start.location, kind="child", body=end.to_text(), arrived_at=ports.clock.now())


def _refused(start: ChildStart) -> Ended:
    error = failures.record(RunAlreadyExists(start.id))
    return Ended(run_id=start.id, lineage=start.id, status="failed", error=error)
