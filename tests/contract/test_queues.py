"""The run queue and the timers."""

import pytest

from durable.errors import LimitExceeded
from durable.model.envelope import Deliver, Start, TimerFired, Wake
from tests.contract.worlds import World


def test_messages_of_one_run_come_in_order(world: World) -> None:
    sent = [
        Start(run_id="a", id="1"),
        Deliver(run_id="a", id="2", name="n", body='"ü"'),
        Wake(run_id="a", id="3", reason="r"),
    ]
    for envelope in sent:
        world.ports.runs.send(envelope)
    assert [message.envelope for message in world.receive_runs()] == sent


def test_a_group_with_a_message_in_flight_gives_nothing_more(world: World) -> None:
    world.ports.runs.send(Start(run_id="a", id="1"))
    (first,) = world.receive_runs()
    world.ports.runs.send(Start(run_id="a", id="2"))
    world.ports.runs.send(Start(run_id="b", id="3"))
    assert [message.envelope.run_id for message in world.receive_runs()] == ["b"]
    world.acknowledge(first.receipt)
    assert [message.envelope.id for message in world.receive_runs()] == ["2"]


def test_a_released_message_comes_again_before_its_successors(world: World) -> None:
    world.ports.runs.send(Start(run_id="a", id="1"))
    (first,) = world.receive_runs()
    world.ports.runs.send(Start(run_id="a", id="2"))
    world.release(first.receipt)
    assert [message.envelope.id for message in world.receive_runs()] == ["1", "2"]


def test_a_repeated_send_is_one_message(world: World) -> None:
    world.ports.runs.send(Start(run_id="a", id="1"))
    world.ports.runs.send(Start(run_id="a", id="1"))
    world.ports.runs.send(Start(run_id="b", id="1"))
    assert [message.envelope.run_id for message in world.receive_runs()] == ["a", "b"]


def test_a_batch_has_at_most_ten_messages(world: World) -> None:
    for n in range(12):
        world.ports.runs.send(Start(run_id=f"run-{n}", id="1"))
    assert [len(world.receive_runs()), len(world.receive_runs())] == [10, 2]


@pytest.mark.parametrize("run_id", ["a" * 128, "A.b_c:d@e=f+g-h"])
def test_hostile_run_ids_are_groups(world: World, run_id: str) -> None:
    world.ports.runs.send(Start(run_id=run_id, id="1"))
    assert [message.envelope.run_id for message in world.receive_runs()] == [run_id]


@pytest.mark.parametrize("size", [256 * 1024 + 1, 2 * 1024 * 1024])
def test_a_message_that_no_mailbox_would_take_is_refused_before_it_is_sent(world: World, size: int) -> None:
    with pytest.raises(LimitExceeded, match='message "n" is'):
        world.ports.runs.send(Deliver(run_id="a", id="1", name="n", body="x" * size))
    assert world.receive_runs() == []


def test_a_timer_that_is_due_fires_at_once(world: World) -> None:
    due_at = world.ports.clock.now() - 5
    world.ports.timers.arm("a", due_at)
    (message,) = world.receive_timers()
    assert isinstance(message.envelope, TimerFired)
    assert (message.envelope.run_id, message.envelope.due_at) == ("a", due_at)


@pytest.mark.parametrize("delay", [5, 899.5])
def test_a_timer_due_soon_waits_in_the_queue(world: World, delay: float) -> None:
    world.ports.timers.arm("a", world.ports.clock.now() + delay)
    assert world.receive_timers() == []
    assert (world.delayed_timers(), len(world.schedules())) == (1, 0)


def test_a_timer_due_later_is_a_schedule_that_fires_up_to_a_minute_early(world: World) -> None:
    due_at = world.ports.clock.now() + 10 * 366 * 86_400
    world.ports.timers.arm("a", due_at)
    (schedule,) = world.schedules()
    assert schedule.run_id == "a"
    assert due_at - 61 < schedule.fires_at <= due_at - 60
    assert isinstance(schedule.envelope, TimerFired)
    assert schedule.envelope.due_at == due_at
    assert (world.receive_timers(), world.delayed_timers()) == ([], 0)


def test_arming_the_same_timer_again_is_one_schedule(world: World) -> None:
    due_at = world.ports.clock.now() + 5000
    for run_id, moment in (("a", due_at), ("a", due_at), ("a", due_at + 0.5), ("b", due_at)):
        world.ports.timers.arm(run_id, moment)
    assert sorted((it.run_id, it.envelope.due_at - due_at) for it in world.schedules()) == [  # type: ignore[union-attr]
        ("a", 0),
        ("a", 0.5),
        ("b", 0),
    ]


@pytest.mark.parametrize("run_id", ["a" * 128, "A.b_c:d@e=f+g-h"])
def test_hostile_run_ids_can_be_scheduled(world: World, run_id: str) -> None:
    world.ports.timers.arm(run_id, world.ports.clock.now() + 5000)
    assert [schedule.run_id for schedule in world.schedules()] == [run_id]


def test_an_envelope_can_go_outside_the_order_of_its_run(world: World) -> None:
    wake = Wake(run_id="a", id="1", reason="maintenance")
    world.ports.timers.send(wake)
    world.ports.timers.send(wake)
    assert [message.envelope for message in world.receive_timers()] == [wake, wake]


def test_a_delay_longer_than_the_queue_allows_is_refused(world: World) -> None:
    wake = Wake(run_id="a", id="1", reason="maintenance")
    with pytest.raises(LimitExceeded, match="901 seconds; the limit is 900 seconds"):
        world.ports.timers.send(wake, delay=900.5)
    world.ports.timers.send(wake, delay=899.5)
    assert world.delayed_timers() == 1
