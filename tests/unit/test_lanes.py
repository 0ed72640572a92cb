"""Lanes at work: who gets a slot and when, whatever dies on the way."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from durable.adapters.memory import MemoryRunQueue, MemoryStore, MemoryTimers, VirtualClock
from durable.app import App
from durable.engine.maintenance import Maintenance
from durable.engine.orchestrator import Delivery, Orchestrator
from durable.errors import StoreUnavailable
from durable.lanes import Granted, Waiting, enter, enter_run, holds, leave, pump, task_action
from durable.model.envelope import Pump, Start, from_body
from durable.model.lane import GRANTS, Full, LaneRate, LaneSpec, Ticket, slot_reason
from durable.model.task import StepTask
from durable.ports import Ports
from durable.testing.interception import intercepted
from tests.contract.builders import a_run, settlement

NOW = 1_796_000_000.0
ONE = LaneSpec(name="queue:labels", limit=1)


class Killed(BaseException):
    pass


class Sent:
    """The workers' queue, of which only the sending end matters here."""

    def __init__(self) -> None:
        self.tasks: list[str] = []

    def send(self, task: StepTask, *, delay: float = 0.0) -> None:
        self.tasks.append(task.run_id)


class Desk:
    """One deployment in memory, with runs `r0`, `r1`, ... each of which has one attempt."""

    def __init__(self, runs: int = 6) -> None:
        self.clock = VirtualClock(NOW)
        numbers = iter(range(1_000_000))
        self.queue = MemoryRunQueue(self.clock)
        self.timers = MemoryTimers(self.clock, lambda: f"id-{next(numbers)}", self.queue)
        self.store = MemoryStore()
        self.steps = Sent()
        self.ports = Ports(
            store=self.store, runs=self.queue, timers=self.timers, clock=self.clock,
            new_id=lambda: f"id-{next(numbers)}", steps=self.steps,
        )  # fmt: skip
        self.orchestrator = Orchestrator(App("lanes"), self.ports)
        for number in range(runs):
            self.store.create(a_run(f"r{number}", created_at=NOW, lane=ONE.name))

    def end(self, run_id: str) -> None:
        acquired: Any = self.store.acquire(
            run_id, owner="o", now=NOW, lease_until=NOW + 1e6, code_version="v", due_is_near=True
        )
        run = acquired.run
        self.store.settle(run_id, epoch=run.epoch, wakes=None, settlement=settlement("completed"))

    def let(self, seconds: float) -> None:
        """Time passes, with timers and maintenance."""
        end = self.clock.now() + seconds
        while self.clock.now() < end:
            self.clock.advance(1.0)
            received = self.timers.receive()
            bodies = [Delivery(id=it.receipt, body=it.body, arrived_at=it.sent_at) for it in received]
            assert not self.orchestrator.process(bodies, remaining=60.0)
            for it in received:
                self.timers.acknowledge(it.receipt)
            if int(self.clock.now()) % 60 == 0:
                Maintenance(self.ports, code_version="v").sweep()

    @property
    def started(self) -> list[str]:
        bodies = [from_body(message.body) for message in self.queue.pending]
        return [envelope.run_id for envelope in bodies if isinstance(envelope, Start)]


@pytest.fixture
def desk() -> Desk:
    return Desk()


def task(number: int) -> StepTask:
    return StepTask(
        run_id=f"r{number}", location="print", epoch=1, attempt=1, queue="labels", name="print", input="{}",
        dispatched_at=NOW, timeout=60.0, heartbeat=None, idempotency_key="k",
    )  # fmt: skip


def come_in(ports: Ports, number: int, spec: LaneSpec = ONE, **fields: Any) -> Granted | Waiting | Full:
    wanted = task(number)
    ticket = Ticket(holder=wanted.holder, action=task_action(wanted), arrived_at=ports.clock.now(), **fields)
    return enter(ports, spec, ticket)


def go_out(ports: Ports, number: int, spec: LaneSpec = ONE) -> None:
    leave(ports, spec.name, task(number).holder)


def test_a_slot_goes_to_the_next_when_its_holder_leaves(desk: Desk) -> None:
    assert [type(come_in(desk.ports, number)) for number in range(3)] == [Granted, Waiting, Waiting]
    go_out(desk.ports, 0)
    assert desk.steps.tasks == ["r1"]
    go_out(desk.ports, 1)
    go_out(desk.ports, 2)
    assert desk.steps.tasks == ["r1", "r2"]
    assert desk.store.read_lane(ONE.name, tickets=9) is None


def test_coming_in_twice_is_coming_in_once(desk: Desk) -> None:
    for _ in range(3):
        assert come_in(desk.ports, 0) == Granted()
        assert come_in(desk.ports, 1) == Waiting()
    state = desk.store.read_lane(ONE.name, tickets=9)
    assert state is not None
    assert (len(state.lane.holders), state.lane.waiting, len(state.places)) == (1, 1, 1)


def test_one_that_was_granted_a_slot_by_others_learns_of_it(desk: Desk) -> None:
    come_in(desk.ports, 0)
    come_in(desk.ports, 1)
    go_out(desk.ports, 0)
    assert come_in(desk.ports, 1) == Granted()


def test_one_that_leaves_the_queue_is_never_granted_anything(desk: Desk) -> None:
    for number in range(3):
        come_in(desk.ports, number)
    go_out(desk.ports, 1)
    go_out(desk.ports, 1)
    go_out(desk.ports, 0)
    assert desk.steps.tasks == ["r2"]


def test_whoever_has_ended_while_it_waited_is_passed_over(desk: Desk) -> None:
    for number in range(4):
        come_in(desk.ports, number)
    desk.end("r1")
    desk.store.close_task("r2", task(2).id, reason="timed out", expires_at=NOW + 1)
    go_out(desk.ports, 0)
    assert desk.steps.tasks == ["r3"]


def test_ops_08_con_08_the_slot_of_one_that_died_is_taken_back(desk: Desk) -> None:
    for number in range(3):
        come_in(desk.ports, number)
    desk.end("r0")
    desk.let(180)
    assert desk.steps.tasks == ["r1"]
    desk.store.delete_run("r1")
    desk.let(180)
    assert desk.steps.tasks == ["r1", "r2"]


def test_one_that_lives_keeps_its_slot_however_long(desk: Desk) -> None:
    come_in(desk.ports, 0)
    come_in(desk.ports, 1)
    desk.let(3600)
    assert desk.steps.tasks == []
    assert holds(desk.ports, ONE.name, task(0).holder)


def test_a_full_lane_refuses_and_still_knows_those_who_wait(desk: Desk) -> None:
    spec = replace(ONE, max_queue=1)
    assert enter_run(desk.ports, spec, "r0") == Granted()
    assert enter_run(desk.ports, spec, "r1") == Waiting()
    assert enter_run(desk.ports, spec, "r2") == Full(waiting=1, limit=1)
    assert enter_run(desk.ports, spec, "r1") == Waiting()
    desk.end("r0")
    leave(desk.ports, spec.name, "r0")
    assert desk.started == ["r1"]
    assert enter_run(desk.ports, spec, "r2") == Waiting()


def test_a_run_that_has_not_ended_is_not_taken_out(desk: Desk) -> None:
    enter_run(desk.ports, ONE, "r0")
    leave(desk.ports, ONE.name, "r0")
    assert holds(desk.ports, ONE.name, "r0")
    leave(desk.ports, ONE.name, "r0", unless_alive=False)
    assert not holds(desk.ports, ONE.name, "r0")


def test_a_run_may_wait_before_it_is_created_but_not_for_ever(desk: Desk) -> None:
    enter_run(desk.ports, ONE, "r0")
    enter_run(desk.ports, ONE, "not-yet")
    desk.end("r0")
    leave(desk.ports, ONE.name, "r0")
    assert desk.started == ["not-yet"]
    enter_run(desk.ports, ONE, "r1")
    desk.let(180)
    assert desk.started == ["not-yet", "r1"]


def test_a_run_that_was_created_after_its_grant_is_started_when_it_is_asked_whether_it_lives(desk: Desk) -> None:
    enter_run(desk.ports, ONE, "r0")
    enter_run(desk.ports, ONE, "late")
    desk.end("r0")
    leave(desk.ports, ONE.name, "r0")
    desk.store.create(a_run("late", created_at=NOW, due_at=None, lane=ONE.name, reason=slot_reason(ONE.name)))
    desk.let(180)
    assert desk.started == ["late", "late"]


def test_a_rate_lets_in_as_many_as_it_says_and_the_others_later(desk: Desk) -> None:
    spec = LaneSpec(name="queue:mail", rate=LaneRate(2, 10.0))
    answers = [type(come_in(desk.ports, number, spec)) for number in range(6)]
    assert answers == [Granted, Granted, Waiting, Waiting, Waiting, Waiting]
    desk.let(5)
    assert desk.steps.tasks == ["r2"]
    desk.let(16)
    assert desk.steps.tasks == ["r2", "r3", "r4", "r5"]


def test_waiting_for_a_rate_takes_one_timer_at_a_time(desk: Desk) -> None:
    spec = LaneSpec(name="queue:mail", rate=LaneRate(1, 100.0))
    for number in range(6):
        come_in(desk.ports, number, spec)
    pump(desk.ports, spec.name)
    assert sum(isinstance(from_body(it.body), Pump) for it in desk.timers.pending) == 1


def test_a_lost_timer_is_made_up_for(desk: Desk) -> None:
    spec = LaneSpec(name="queue:mail", rate=LaneRate(1, 100.0))
    for number in range(2):
        come_in(desk.ports, number, spec)
    desk.clock.advance(101)
    for it in desk.timers.receive():
        desk.timers.acknowledge(it.receipt)
    desk.let(120)
    assert desk.steps.tasks == ["r1"]


def test_more_slots_than_fit_into_one_write_are_all_given() -> None:
    desk = Desk(runs=3 * GRANTS + 1)
    come_in(desk.ports, 0)
    for number in range(1, 3 * GRANTS + 1):
        come_in(desk.ports, number)
    wide = replace(ONE, limit=1_000)
    go_out(desk.ports, 0)
    assert len(desk.steps.tasks) == 1
    come_in(desk.ports, 0, wide)
    assert sorted(desk.steps.tasks[:-1]) == sorted(f"r{number}" for number in range(1, 3 * GRANTS + 1))


def test_priority_decides_who_is_next(desk: Desk) -> None:
    come_in(desk.ports, 0)
    come_in(desk.ports, 1)
    come_in(desk.ports, 2, priority=5)
    go_out(desk.ports, 0)
    assert desk.steps.tasks == ["r2"]


def test_a_ticket_that_nobody_can_read_gives_its_slot_to_the_next(desk: Desk) -> None:
    come_in(desk.ports, 0)
    enter(desk.ports, ONE, replace(Ticket(holder="r1|x:1:1", action="", arrived_at=NOW), action="nonsense"))
    come_in(desk.ports, 2)
    go_out(desk.ports, 0)
    assert desk.steps.tasks == ["r2"]


def test_a_lane_that_others_change_all_the_time_is_given_up_and_nothing_is_lost(desk: Desk) -> None:
    def always_late(name: str, perform: Callable[[], Any]) -> Any:
        return False if name == "store.write_lane" else perform()

    with pytest.raises(StoreUnavailable, match="queue:labels"):
        come_in(intercepted(desk.ports, always_late), 0)
    assert come_in(desk.ports, 0) == Granted()


# Dying at every call, before and after its effect


def story(ports: Ports) -> list[Callable[[], object]]:
    """Three come in, and each leaves when it has had its slot."""
    return [
        lambda: come_in(ports, 0),
        lambda: come_in(ports, 1),
        lambda: come_in(ports, 2),
        lambda: go_out(ports, 0),
        lambda: go_out(ports, 1),
        lambda: go_out(ports, 2),
    ]


def calls_of_the_story() -> int:
    desk, count = Desk(), 0

    def counted(name: str, perform: Callable[[], Any]) -> Any:
        nonlocal count
        count += 1
        return perform()

    for act in story(intercepted(desk.ports, counted)):
        act()
    return count


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("how", [Killed, StoreUnavailable])
@pytest.mark.parametrize("fatal", range(calls_of_the_story()))
def test_a_death_at_any_call_loses_nobody_and_lets_nobody_in_too_much(fatal: int, how: Any, after: bool) -> None:
    desk, count = Desk(), 0

    def deadly(name: str, perform: Callable[[], Any]) -> Any:
        nonlocal count
        count += 1
        if count - 1 != fatal:
            return perform()
        if after:
            perform()
        raise how("here")

    for number, act in enumerate(story(intercepted(desk.ports, deadly))):
        for _ in range(3):  # whoever dies is started again, and does all of it again
            try:
                act()
            except (Killed, StoreUnavailable):
                continue
            break
        if number >= 3:
            desk.let(130)
        state = desk.store.read_lane(ONE.name, tickets=9)
        assert state is None or len(state.lane.holders) <= 1
    assert set(desk.steps.tasks) == {"r1", "r2"}
    assert desk.store.read_lane(ONE.name, tickets=9) is None
    assert desk.store.find_ticket(ONE.name, task(1).holder) is None
