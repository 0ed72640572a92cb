"""What is too large to be stored or sent, refused before any request and alike by every adapter."""

from __future__ import annotations

import zlib
from math import ceil
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from durable.errors import ErrorInfo, LimitExceeded
from durable.model.envelope import Deliver
from durable.model.limits import (
    COMPRESS_BYTES,
    ITEM_BYTES,
    NAME_BYTES,
    PAYLOAD_BYTES,
    PROGRESS_BYTES,
    QUEUE_BYTES,
    SQS_DELAY_SECONDS,
)
from durable.model.message import StoredMessage

if TYPE_CHECKING:
    from durable.model.entry import Entry
    from durable.model.envelope import Envelope
    from durable.model.lane import Ticket
    from durable.model.task import StepTask

_BY_REFERENCE = "Store it elsewhere (S3) in a step and pass a reference to it."
_OVERHEAD = 4 * 1024
"""Room in an item for keys, names of attributes and the small fields."""

_ERROR: TypeAdapter[ErrorInfo] = TypeAdapter(ErrorInfo)
_MESSAGES: TypeAdapter[tuple[StoredMessage, ...]] = TypeAdapter(tuple[StoredMessage, ...])


def pack(text: str) -> str | bytes:
    """The text itself, or its compressed bytes where it is large: writes are paid by the KB."""
    if len(text) <= COMPRESS_BYTES and len(text.encode()) <= COMPRESS_BYTES:
        return text
    return zlib.compress(text.encode())


def unpack(packed: str | bytes) -> str:
    """What was packed."""
    return packed if isinstance(packed, str) else zlib.decompress(packed).decode()


def error_text(error: ErrorInfo) -> str:
    """An error as JSON."""
    return _ERROR.dump_json(error).decode()


def error_from(text: str) -> ErrorInfo:
    """Reads an error's JSON."""
    return _ERROR.validate_json(text)


def messages_text(messages: tuple[StoredMessage, ...]) -> str:
    """Messages as JSON."""
    return _MESSAGES.dump_json(messages).decode()


def messages_from(text: str) -> tuple[StoredMessage, ...]:
    """Reads messages' JSON."""
    return _MESSAGES.validate_json(text)


def check_payload(what: str, text: str | None) -> None:
    """Refuses a value that is larger than a payload may be."""
    if text is None or len(text) * 4 <= PAYLOAD_BYTES:
        return
    size = len(text.encode())
    if size > PAYLOAD_BYTES:
        raise LimitExceeded(what, size, PAYLOAD_BYTES, instead=_BY_REFERENCE)


def check_entry(entry: Entry) -> None:
    """Refuses an entry that would not fit into an item."""
    for part in (*entry.carried, entry):
        check_payload(f'the result of "{part.location}"', part.value)
        check_payload(f'what undoing "{part.location}" is given', part.compensation and part.compensation.args)
    size = entry_bytes(entry)
    if size > ITEM_BYTES:
        raise LimitExceeded(f'the result of "{entry.location}"', size, ITEM_BYTES, instead=_BY_REFERENCE)


def entry_bytes(entry: Entry) -> int:
    """The size of an entry as an item, or a smaller number where it is far from the limit."""
    parts: list[str] = []
    for part in (*entry.carried, entry):
        error = None if part.error is None else error_text(part.error)
        messages = messages_text(part.messages) if part.messages else None
        undo = None if part.compensation is None else part.compensation.args
        parts += [text for text in (part.value, error, messages, undo) if text is not None]
    return _item_bytes(parts)


def check_message(message: StoredMessage) -> None:
    """Refuses a message that would not fit into the mailbox."""
    check_payload(f'message "{message.name}"', message.body)


def check_progress(task_id: str, text: str | None) -> None:
    """Refuses a heartbeat that tells too much."""
    if text is not None and (size := len(text.encode())) > PROGRESS_BYTES:
        raise LimitExceeded(
            f'the progress of "{task_id}"', size, PROGRESS_BYTES, instead="Tell where it is, not what it has."
        )


def check_task(task: StepTask, body: str) -> None:
    """Refuses a task that the queue would refuse."""
    size = len(body.encode())
    if size > QUEUE_BYTES:
        raise LimitExceeded(f'the call of remote step "{task.name}"', size, QUEUE_BYTES, instead=_BY_REFERENCE)


def check_delay(delay: float) -> int:
    """Whole seconds, never less than asked for; refuses what a standard queue does not hold back."""
    seconds = max(0, ceil(delay))
    if seconds > SQS_DELAY_SECONDS:
        raise LimitExceeded("the delay of a queue message", seconds, SQS_DELAY_SECONDS, unit="seconds")
    return seconds


def check_idempotency_key(key: str) -> None:
    """Refuses a key that could not be part of an item's key."""
    size = len(key.encode())
    if size > NAME_BYTES:
        raise LimitExceeded("the idempotency key", size, NAME_BYTES)


def check_ticket(ticket: Ticket) -> None:
    """Refuses a ticket that would not fit into an item."""
    size = _item_bytes([ticket.action])
    if size > ITEM_BYTES:
        raise LimitExceeded(f'what "{ticket.holder}" is to do', size, ITEM_BYTES, instead=_BY_REFERENCE)


def check_envelope(envelope: Envelope, body: str) -> None:
    """Refuses an envelope that the queue, or later the mailbox, would refuse."""
    if isinstance(envelope, Deliver):
        check_payload(f'message "{envelope.name}"', envelope.body)
        if envelope.start is not None:
            check_payload("the input", envelope.start.input)
    size = len(body.encode())
    if size > QUEUE_BYTES:
        raise LimitExceeded("a queue message", size, QUEUE_BYTES, instead=_BY_REFERENCE)


def _item_bytes(parts: list[str]) -> int:
    """Texts of an item as they are stored; those that fit in any case are not looked at closely."""
    if sum(len(part) * 4 for part in parts) <= ITEM_BYTES - _OVERHEAD:
        return 0
    packed = [pack(part) for part in parts]
    return sum(len(part if isinstance(part, bytes) else part.encode()) for part in packed) + _OVERHEAD
