"""Rules of SQS that need time or many deliveries to show."""

from dataclasses import replace

from durable.adapters.memory import MemoryRunQueue, MemoryTimers, VirtualClock
from durable.model.envelope import Start, Wake


class Queues:
    def __init__(self, max_receives: int = 3) -> None:
        self.clock = VirtualClock()
        ids = iter(f"id-{n}" for n in range(1000))
        self.runs = MemoryRunQueue(self.clock, visibility_timeout=30, max_receives=max_receives)
        self.timers = MemoryTimers(
            self.clock, lambda: next(ids), self.runs, visibility_timeout=30, max_receives=max_receives
        )

    def start(self, run_id: str, message_id: str = "1") -> None:
        self.runs.send(Start(run_id=run_id, id=message_id))


def test_an_unacknowledged_message_comes_again_after_the_visibility_timeout() -> None:
    queues = Queues()
    queues.start("a")
    (first,) = queues.runs.receive()
    assert queues.runs.next_visible_at() == queues.clock.now() + 30
    queues.clock.advance(29.9)
    assert queues.runs.receive() == []
    queues.clock.advance(0.1)
    (second,) = queues.runs.receive()
    assert (second.body, second.receive_count, second.sequence) == (first.body, 2, first.sequence)


def test_a_fifo_receipt_is_worthless_after_its_timeout() -> None:
    queues = Queues()
    queues.start("a")
    (first,) = queues.runs.receive()
    queues.clock.advance(30)
    assert not queues.runs.acknowledge(first.receipt)
    (second,) = queues.runs.receive()
    assert not queues.runs.acknowledge(first.receipt)
    assert queues.runs.acknowledge(second.receipt)
    assert not queues.runs.acknowledge(second.receipt)
    assert queues.runs.pending == []


def test_a_standard_receipt_is_good_until_the_next_delivery() -> None:
    queues = Queues()
    queues.timers.send(Wake(run_id="a", id="1", reason=""))
    (first,) = queues.timers.receive()
    queues.clock.advance(31)
    assert queues.timers.acknowledge(first.receipt)


def test_a_group_is_locked_until_all_of_it_is_settled() -> None:
    queues = Queues()
    queues.start("a", "1")
    queues.start("a", "2")
    first, second = queues.runs.receive()
    queues.runs.release(first.receipt)
    assert queues.runs.receive() == []
    queues.runs.release(second.receipt)
    assert [message.receive_count for message in queues.runs.receive()] == [2, 2]


def test_a_message_received_too_often_goes_to_the_dead_letters_and_frees_its_group() -> None:
    queues = Queues(max_receives=2)
    queues.start("a", "poison")
    queues.start("a", "next")
    for _ in range(2):
        (poison,) = queues.runs.receive(1)
        queues.runs.release(poison.receipt)
    (following,) = queues.runs.receive()
    assert '"next"' in following.body
    assert [message.receive_count for message in queues.runs.dead_letters] == [2]


def test_equal_bodies_are_dropped_for_five_minutes_handled_or_not() -> None:
    queues = Queues()
    queues.start("a")
    (first,) = queues.runs.receive()
    queues.runs.acknowledge(first.receipt)
    queues.clock.advance(299)
    queues.start("a")
    assert queues.runs.next_visible_at() is None
    queues.clock.advance(1)
    queues.start("a")
    assert len(queues.runs.receive()) == 1


def test_timers_come_in_the_order_in_which_they_are_due() -> None:
    queues = Queues()
    now = queues.clock.now()
    for run_id, delay in (("late", 20), ("early", 10), ("now", -5)):
        queues.timers.arm(run_id, now + delay)
    assert queues.timers.next_visible_at() == now
    queues.clock.advance(20)
    assert [message.body.split('"')[3] for message in queues.timers.receive()] == ["now", "early", "late"]


def test_a_delay_is_rounded_up_so_that_no_timer_is_early() -> None:
    queues = Queues()
    queues.timers.arm("a", queues.clock.now() + 1.2)
    assert queues.timers.next_visible_at() == queues.clock.now() + 2


def test_a_schedule_fires_a_minute_early_into_the_runs_queue_and_is_gone() -> None:
    queues = Queues()
    now = queues.clock.now()
    queues.timers.arm("a", now + 5000)
    queues.timers.arm("a", now + 5000)
    assert (queues.timers.next_schedule_at(), queues.timers.next_visible_at()) == (now + 4940, None)
    queues.clock.advance(4939)
    assert queues.timers.fire_schedules() == 0
    queues.clock.advance(1)
    assert queues.timers.fire_schedules() == 1
    assert (len(queues.runs.receive()), queues.timers.schedules) == (1, [])


def test_a_test_can_lose_delay_and_duplicate_messages() -> None:
    queues = Queues()
    for run_id in ("lost", "late", "twice"):
        queues.start(run_id)
    lost, late, twice = queues.runs.pending
    queues.runs.change(lost.sequence, lambda _: None)
    queues.runs.change(late.sequence, lambda message: replace(message, visible_at=message.visible_at + 10))
    queues.runs.enqueue(twice.body, group=twice.group)
    assert [message.body for message in queues.runs.receive()] == [twice.body] * 2
    queues.clock.advance(10)
    assert [message.body for message in queues.runs.receive()] == [late.body]


def test_time_moves_when_somebody_sleeps_and_never_back() -> None:
    clock = VirtualClock(100.0)
    clock.sleep(5)
    clock.sleep(-1)
    clock.advance_to(90)
    assert (clock.now(), clock.monotonic()) == (105.0, 5.0)
