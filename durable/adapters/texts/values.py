"""The texts inside of what travels through the ports: in which form each is stored, and back."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from durable.adapters.sizes import entry_bytes
from durable.errors import ErrorInfo, LimitExceeded
from durable.model.envelope import Deliver, Publish, to_body
from durable.model.limits import ITEM_BYTES, PAYLOAD_BYTES, QUEUE_BYTES
from durable.model.stored import OF_EVENTS, Unreadable
from durable.model.subscription import MatchKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from durable.adapters.texts.wrapping import Wrapping
    from durable.model.entry import Entry
    from durable.model.envelope import Envelope
    from durable.model.message import StoredMessage
    from durable.model.run import Run, Settlement
    from durable.model.subscription import Subscription
    from durable.model.task import StepTask


# Entries


def entry_out(wrapping: Wrapping, run_id: str, entry: Entry) -> Entry:
    """The largest of its texts go to the bucket until the rest fits into an item."""
    texts = list(_texts_of(entry))
    if not wrapping.seals and not entry.error and sum(map(len, texts)) * 4 <= PAYLOAD_BYTES:
        return entry
    what = f'what "{entry.location}" records'
    stored = [wrapping.out(text, run_id, what) for text in texts]
    wrapped = _with_errors(_with_texts(entry, iter(stored)), lambda error: error_out(wrapping, run_id, error))
    if entry_bytes(wrapped) <= ITEM_BYTES:
        return wrapped
    with suppress(LimitExceeded):  # without a bucket the store says how large the whole is
        for index in sorted(range(len(stored)), key=lambda index: -len(stored[index])):
            stored[index] = wrapping.apart(stored[index], texts[index], run_id, what)
            wrapped = _with_texts(wrapped, iter(stored))
            if entry_bytes(wrapped) <= ITEM_BYTES:
                break
    return wrapped


def entry_in(wrapping: Wrapping, entry: Entry) -> Entry:
    """Its texts; `Unreadable` where one cannot be read."""
    texts = list(_texts_of(entry))
    read = [wrapping.read(text) for text in texts]
    if any(after is not before for after, before in zip(read, texts, strict=True)):
        entry = _with_texts(entry, iter(read))
    return _with_errors(entry, lambda error: error_in(wrapping, error))


def why_unreadable(entries: Sequence[Entry], messages: Sequence[StoredMessage]) -> str | None:
    """Why the first text that could not be read could not; None where all could."""
    texts = (text for entry in entries for text in (*_texts_of(entry), *_texts_of_errors(entry)))
    for text in chain(texts, (message.body for message in messages)):
        if isinstance(text, Unreadable):
            return text.reason
    return None


def _texts_of(entry: Entry) -> Iterator[str]:
    """Always in the same order, which `_with_texts` relies on."""
    for carried in entry.carried:
        yield from _texts_of(carried)
    for message in entry.messages:
        yield message.body
    if entry.value is not None:
        yield entry.value
    if entry.compensation is not None:
        yield entry.compensation.args


def _with_texts(entry: Entry, texts: Iterator[str]) -> Entry:
    carried = tuple(_with_texts(part, texts) for part in entry.carried)
    messages = tuple(replace(message, body=next(texts)) for message in entry.messages)
    value = None if entry.value is None else next(texts)
    undo = entry.compensation
    return replace(
        entry, carried=carried, messages=messages, value=value,
        compensation=None if undo is None else replace(undo, args=next(texts)),
    )  # fmt: skip


def _with_errors(entry: Entry, change: Callable[[ErrorInfo], ErrorInfo]) -> Entry:
    if any(part.error is not None for part in entry.carried):
        entry = replace(entry, carried=tuple(_with_errors(part, change) for part in entry.carried))
    return entry if entry.error is None else replace(entry, error=change(entry.error))


def _texts_of_errors(entry: Entry) -> Iterator[str]:
    error = entry.error
    while error is not None:
        yield error.message
        if isinstance(error.data, str):
            yield error.data
        error = error.cause
    for part in entry.carried:
        yield from _texts_of_errors(part)


# Errors: their classes stay readable


def error_out(wrapping: Wrapping, owner: str, error: ErrorInfo, *, readable: bool = False) -> ErrorInfo:
    """Message and data, and those of its causes; not sealed where people must be able to read it in any case."""
    cause = None if error.cause is None else error_out(wrapping, owner, error.cause, readable=readable)
    return ErrorInfo(
        type=error.type, module=error.module, message=wrapping.any_out(error.message, owner, readable=readable),
        data=None if error.data is None else wrapping.any_out(error.data, owner, readable=readable), cause=cause,
    )  # fmt: skip


def error_in(wrapping: Wrapping, error: ErrorInfo) -> ErrorInfo:
    """Message and data, and those of its causes; `Unreadable` where they cannot be read."""
    message, data = wrapping.any_in(error.message), wrapping.any_in(error.data)
    cause = None if error.cause is None else error_in(wrapping, error.cause)
    if message is error.message and data is error.data and cause is error.cause:
        return error
    return ErrorInfo(type=error.type, module=error.module, message=message, data=data, cause=cause)


# Runs


def run_out(wrapping: Wrapping, run: Run) -> Run:
    """A new record."""
    if run.input is None:
        return run
    return replace(run, input=wrapping.out(run.input, run.id, "the input"))


def run_in(wrapping: Wrapping, run: Run) -> Run:
    """A record; what cannot be read of it says so, and the rest can be used."""
    return replace(
        run, input=_read(wrapping, run.input), output=_read(wrapping, run.output),
        error=None if run.error is None else error_in(wrapping, run.error),
        reason=_reason_in(wrapping, run.reason),
    )  # fmt: skip


def settlement_out(wrapping: Wrapping, run_id: str, settlement: Settlement) -> Settlement:
    """How a run ended. Why it is blocked is told by the framework, and must be readable when nothing else is."""
    output, error, blocked = settlement.output, settlement.error, settlement.status == "blocked"
    if error is not None:
        error = error_out(wrapping, run_id, error, readable=blocked and settlement.ending is None)
    return replace(
        settlement, error=error, output=None if output is None else wrapping.out(output, run_id, "the output"),
        reason=reason_out(wrapping, run_id, settlement.reason, readable=error is None or blocked),
    )  # fmt: skip


def reason_out(wrapping: Wrapping, run_id: str, reason: str | None, *, readable: bool) -> str | None:
    """What a record says for people; it may repeat the message of an error."""
    return None if reason is None else wrapping.any_out(reason, run_id, readable=readable)


def _read(wrapping: Wrapping, stored: str | None) -> str | None:
    return None if stored is None else wrapping.read(stored)


def _reason_in(wrapping: Wrapping, reason: str | None) -> str | None:
    text = wrapping.any_in(reason)
    return f"unreadable: {text.reason}" if isinstance(text, Unreadable) else text


# Messages, tasks, events


def message_out(wrapping: Wrapping, run_id: str, message: StoredMessage) -> StoredMessage:
    """A message for the mailbox."""
    return _with_body(message, wrapping.out(message.body, run_id, f'message "{message.name}"'))


def message_in(wrapping: Wrapping, message: StoredMessage) -> StoredMessage:
    """A message of the mailbox; its body is `Unreadable` where it cannot be read."""
    return _with_body(message, wrapping.read(message.body))


def _with_body(message: StoredMessage, body: str) -> StoredMessage:
    return message if body is message.body else replace(message, body=body)


def envelope_out(wrapping: Wrapping, envelope: Envelope) -> Envelope:
    """What it carries, so that the whole fits into a queue message."""
    match envelope:
        case Deliver():
            return _deliver_out(wrapping, envelope)
        case Publish():
            body = wrapping.out(envelope.body, owner_of_event(envelope.event), f'event "{envelope.event}"')
            return envelope if body is envelope.body else replace(envelope, body=body)
        case _:
            return envelope


def _deliver_out(wrapping: Wrapping, envelope: Deliver) -> Deliver:
    start, run_id = envelope.start, envelope.run_id
    given = None if start is None else start.input
    body = wrapping.out(envelope.body, run_id, f'message "{envelope.name}"')
    input_ = None if given is None else wrapping.out(given, run_id, "the input")

    def made() -> Deliver:
        return replace(envelope, body=body, start=None if start is None else replace(start, input=input_))

    if body is envelope.body and input_ is given and len(body) + len(input_ or "") <= PAYLOAD_BYTES // 2:
        return envelope
    if given is not None and input_ is not None and len(to_body(made())) * 4 > QUEUE_BYTES:
        with suppress(LimitExceeded):  # without a bucket the queue says how large the whole is
            if len(to_body(made()).encode()) > QUEUE_BYTES:
                input_ = wrapping.apart(input_, given, run_id, "the input")
    return made()


def envelope_in(wrapping: Wrapping, envelope: Envelope) -> Envelope:
    """What the orchestrator itself reads; the body of a message goes to the mailbox as it is."""
    match envelope:
        case Publish():
            return replace(envelope, body=wrapping.needed(envelope.body))
        case Deliver(start=start) if start is not None and start.input is not None:
            return replace(envelope, start=replace(start, input=wrapping.needed(start.input)))
        case _:
            return envelope


def task_out(wrapping: Wrapping, task: StepTask) -> StepTask:
    """An order for a worker."""
    stored = wrapping.out(task.input, task.run_id, f'the call of remote step "{task.name}"')
    return task if stored is task.input else replace(task, input=stored)


def task_in(wrapping: Wrapping, task: StepTask) -> StepTask:
    """An order for a worker; raises PayloadUnreadable."""
    return replace(task, input=wrapping.needed(task.input))


def owner_of_event(event: str) -> str:
    """Whom the payloads of an event belong to, until a run has them."""
    return OF_EVENTS + event


def subscription_out(wrapping: Wrapping, subscription: Subscription) -> Subscription:
    """Who waits, and for which values: the paths stay readable."""
    if not wrapping.seals:
        return subscription
    match_ = tuple(
        MatchKey(key.path, wrapping.any_out(key.value, subscription.run_id)) for key in subscription.awaited.match
    )
    return replace(subscription, awaited=replace(subscription.awaited, match=match_))


def subscription_in(wrapping: Wrapping, subscription: Subscription) -> Subscription:
    """Who waits, and for which values."""
    if not any(isinstance(key.value, str) for key in subscription.awaited.match):
        return subscription
    match_ = tuple(MatchKey(key.path, wrapping.any_in(key.value)) for key in subscription.awaited.match)
    return replace(subscription, awaited=replace(subscription.awaited, match=match_))
