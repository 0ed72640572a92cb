"""The queues of the workers, from both ends."""

from dataclasses import replace

import pytest

from durable.errors import LimitExceeded
from durable.model.limits import QUEUE_BYTES
from durable.model.task import StepTask, input_text, task_from
from tests.contract.worlds import AwsWorld, World

TASK = StepTask(
    run_id="run-1", location="labels/print", epoch=5, attempt=1, queue="default", name="print_label",
    input=input_text(["ü", 1.5], {"n": None}), dispatched_at=1.5, timeout=60.0, heartbeat=None, idempotency_key="key",
)  # fmt: skip


def received(world: World, queue: str = "default", *, hidden: float = 60.0) -> list[StepTask]:
    return [task_from(delivery.body) for delivery in world.tasks(queue).receive(wait=0, hidden=hidden)]


def test_a_task_is_received_as_it_was_sent(world: World) -> None:
    world.ports.steps.send(TASK)
    assert received(world) == [TASK]
    assert received(world) == []


def test_equal_tasks_are_not_dropped(world: World) -> None:
    for _ in range(2):
        world.ports.steps.send(TASK)
    assert [received(world), received(world)] == [[TASK], [TASK]]


def test_a_task_that_was_given_back_comes_again_and_counts(world: World) -> None:
    world.ports.steps.send(TASK)
    source = world.tasks()
    (first,) = source.receive(wait=0, hidden=60)
    source.hide(first.id, 0)
    (second,) = source.receive(wait=0, hidden=60)
    assert (first.receive_count, second.receive_count) == (1, 2)
    source.acknowledge(second.id)
    assert received(world) == []


def test_a_task_that_is_not_given_back_is_seen_again_after_its_time(world: World) -> None:
    world.ports.steps.send(TASK)
    assert received(world, hidden=0) == [TASK]
    assert received(world) == [TASK]


def test_who_has_acknowledged_a_task_hides_nothing(world: World) -> None:
    world.ports.steps.send(TASK)
    source = world.tasks()
    (delivery,) = source.receive(wait=0, hidden=60)
    source.acknowledge(delivery.id)
    source.hide(delivery.id, 0)
    assert received(world) == []


@pytest.mark.parametrize("delay", [0.5, 900])
def test_a_task_can_be_sent_for_later(world: World, delay: float) -> None:
    world.ports.steps.send(TASK, delay=delay)
    assert received(world) == []


def test_what_sqs_would_refuse_is_refused(world: World) -> None:
    with pytest.raises(LimitExceeded, match='the call of remote step "print_label" is'):
        world.ports.steps.send(replace(TASK, input="x" * QUEUE_BYTES))
    with pytest.raises(LimitExceeded, match="901 seconds"):
        world.ports.steps.send(TASK, delay=900.5)
    assert received(world) == []


def test_a_name_with_a_queue_of_its_own_goes_there_and_others_to_the_default(world: World) -> None:
    if not isinstance(world, AwsWorld):
        pytest.skip("in memory all queues are one")
    tasks = [replace(TASK, queue=queue) for queue in ("gpu", "labels")]
    for task in tasks:
        world.ports.steps.send(task)
    assert [received(world, "gpu"), received(world, "gpu")] == [[tasks[0]], []]
    assert received(world) == [tasks[1]]
