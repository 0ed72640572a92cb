"""Answers of entities: sent once they are recorded, again after a crash if need be; and refusals by those that have ended."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

from durable import failures
from durable.errors import RunEnded
from durable.model.entity import CALL, SERVED, Answer, call_from, held_from, is_held
from durable.model.envelope import Deliver
from durable.model.history import counting_entries, unpacked
from durable.model.ids import PREFIX_OF_ENTITIES
from durable.model.limits import NAME_BYTES
from durable.model.reply import KEPT_SECONDS
from durable.records import pages_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.model.entry import Entry
    from durable.model.message import StoredMessage
    from durable.model.run import Run
    from durable.ports import Ports


def answer_recorded(ports: Ports, run: Run, entry: Entry) -> None:
    """Sends the answer that the entry holds, if there is one. Twice is harmless: it is the same answer."""
    held = held_from(entry.value)
    if held.answer is not None:
        answer = replace(held.answer, value=held.state, of_state=False) if held.answer.of_state else held.answer
        _send(ports, run, answer)


def is_ended_entity(run: Run) -> bool:
    """Whether it is the run of an entity that will perform nothing more."""
    return run.ended and run.workflow.startswith(PREFIX_OF_ENTITIES)


def refuse_calls(ports: Ports, run: Run) -> None:
    """Tells everybody whose call an ended entity has not performed, or not to its end. Twice is harmless."""
    pages = pages_of(ports.store, run.id)
    entries = list(counting_entries(run, unpacked(item for page in pages for item in page.entries)))
    _answer_last(ports, run, entries)
    consumed = {message.id for entry in entries for message in entry.messages}
    left = [m for page in pages for m in page.messages if m.channel == f"entity:{CALL}" and m.id not in consumed]
    if not left:
        return
    buried = ports.store.buried(run.lineage or run.id, [message.id for message in left]) if run.pruned else set[str]()
    refused = [message for message in left if message.id not in buried]
    for message in refused:
        _refuse(ports, run, message)
    ports.store.delete_messages(run.id, [message.id for message in refused])


def _answer_last(ports: Ports, run: Run, entries: Sequence[Entry]) -> None:
    """The answer to the last operation may not have been sent, and the one under way will never have one."""
    held = max((entry for entry in entries if is_held(run, entry)), key=lambda entry: int(entry.mark[1:]), default=None)
    if held is not None:
        answer_recorded(ports, run, held)
    iteration = 0 if held is None else int(held.mark[1:])
    under_way = [entry for entry in entries if entry.location.startswith(f"{SERVED}[{iteration}]/")]
    for message in (message for entry in under_way for message in entry.messages):
        if message.channel == f"entity:{CALL}":
            _refuse(ports, run, message)


def _refuse(ports: Ports, run: Run, message: StoredMessage) -> None:
    try:
        caller = call_from(message.body).caller
    except ValueError:
        return
    if caller is not None:
        error = failures.record(RunEnded(run.id, run.status))
        _send(ports, run, Answer(id=message.id, caller=caller, error=error))


def _send(ports: Ports, run: Run, answer: Answer) -> None:
    text = answer.to_text()
    caller = answer.caller
    if caller.run_id is None:
        expires_at = ports.clock.now() + KEPT_SECONDS
        ports.store.put_reply(run.lineage or run.id, answer.id, text, expires_at=expires_at)
        return
    ports.runs.send(
        Deliver(run_id=caller.run_id, id=_message_id(answer), name=caller.location, kind="entity", body=text)
    )


def _message_id(answer: Answer) -> str:
    whole = f"answer:{answer.id}"
    return whole if len(whole) <= NAME_BYTES else f"answer:{sha256(whole.encode()).hexdigest()[:32]}"
