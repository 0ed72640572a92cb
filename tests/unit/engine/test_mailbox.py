"""Waits resolve in event-time order, whatever the order in which a turn learns of things."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from durable.engine.mailbox import Mailbox
from durable.model.message import StoredMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.ops.operation import WaitOperation


@dataclass
class Waiting:
    """A wait as the mailbox sees it."""

    seq: int
    deadline: float | None = None
    immediate: bool = False
    channels: tuple[str, ...] = ()
    count: int = 1

    def claim(self, messages: Sequence[StoredMessage]) -> tuple[StoredMessage, ...]:
        return tuple(messages[: self.count])


def message(id: str, at: float, name: str = "go", sequence: str = "") -> StoredMessage:
    return StoredMessage(id=id, name=name, body="null", arrived_at=at, sequence=sequence)


def first(waits: Sequence[Waiting], messages: Sequence[StoredMessage], now: float) -> tuple[int, list[str]] | None:
    ready = Mailbox(messages, set()).first_ready(cast("Any", waits), now)
    return None if ready is None else (ready.wait.seq, [m.id for m in ready.messages])


GO = ("signal:go",)


def test_a_message_before_the_deadline_is_received_by_a_late_turn() -> None:
    assert first([Waiting(1, deadline=10, channels=GO)], [message("m", 9)], now=99) == (1, ["m"])


def test_a_message_after_the_deadline_loses_to_it() -> None:
    assert first([Waiting(1, deadline=10, channels=GO)], [message("m", 11)], now=99) == (1, [])


def test_on_a_tie_the_message_wins() -> None:
    waits = [Waiting(1, deadline=10), Waiting(2, channels=GO)]
    assert first(waits, [message("m", 10)], now=99) == (2, ["m"])


def test_the_earlier_deadline_wins() -> None:
    assert first([Waiting(1, deadline=12), Waiting(2, deadline=11)], [], now=99) == (2, [])


def test_a_buffered_message_beats_a_zero_sleep() -> None:
    waits = [Waiting(1, deadline=10, immediate=True), Waiting(2, channels=GO)]
    assert first(waits, [message("m", 11)], now=12) == (2, ["m"])


def test_a_zero_sleep_fires_when_no_message_is_there() -> None:
    waits = [Waiting(1, deadline=10, immediate=True), Waiting(2, channels=GO)]
    assert first(waits, [], now=12) == (1, [])


def test_nothing_is_ready_before_its_time() -> None:
    assert first([Waiting(1, deadline=10), Waiting(2, channels=GO)], [message("m", 1, "other")], now=9) is None


def test_two_waits_of_one_channel_are_served_in_the_order_of_their_calls() -> None:
    waits = [Waiting(2, channels=GO), Waiting(1, channels=GO)]
    assert first(waits, [message("m", 1)], now=9) == (1, ["m"])


def test_messages_are_taken_in_order_of_arrival_and_then_of_sequence() -> None:
    messages = [message("c", 2, sequence="9"), message("b", 1, sequence="10"), message("a", 1, sequence="9")]
    assert first([Waiting(1, channels=GO, count=3)], messages, now=9) == (1, ["a", "b", "c"])


def test_any_signal_takes_the_earliest_of_all_names() -> None:
    messages = [message("later", 3, "x"), message("earlier", 2, "y")]
    assert first([Waiting(1, channels=("*",))], messages, now=9) == (1, ["earlier"])


def test_a_consumed_message_does_not_come_back_when_the_mailbox_is_loaded_again() -> None:
    mailbox = Mailbox([message("m", 1)], set())
    mailbox.consume([message("m", 1)])
    mailbox.add([message("m", 1)])
    wait = cast("WaitOperation", Waiting(1, channels=GO))
    assert mailbox.first_ready([wait], 9) is None
    assert len(mailbox) == 0
