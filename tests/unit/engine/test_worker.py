"""A worker performs tasks of remote steps, and whatever kills it, no task is lost and no result made up."""

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pydantic import BaseModel

from durable import App, NonRetryableError, RetryAfter, RollbackError, step_context
from durable.adapters.memory import MemoryRunQueue
from durable.engine.options import EngineOptions
from durable.engine.steps import InlineStepRunner, ThreadStepRunner
from durable.engine.worker import UNKNOWN_TRIES, RemoteWorker
from durable.lanes import Granted, Waiting, enter, task_action
from durable.model.delivery import TaskDelivery
from durable.model.envelope import Deliver, from_body
from durable.model.lane import Full, LaneSpec, Ticket
from durable.model.task import StepTask, TaskOutcome, input_text, outcome_from
from durable.testing.containers import WorkerContainer
from durable.testing.faults import Faults, InvocationKilled
from durable.testing.mocks import Mocks
from durable.testing.services import Services, in_memory
from durable.testing.steps import TestSteps

app = App("labels")


class Order(BaseModel):
    id: str
    items: int = 1


class Label(BaseModel):
    text: str


class Jam(RollbackError):
    pass


@app.remote_step
def print_label(order: Order, *, copies: int = 1) -> list[Label]:
    return [Label(text=f"{order.id} {n}") for n in range(copies)]


@app.remote_step
async def weigh(order: Order) -> float:
    return order.items * 0.5


@app.remote_step
def fail(how: str) -> None:
    errors = {
        "plainly": ValueError("paper jam"),
        "for good": NonRetryableError("no such printer"),
        "wholly": Jam("everything back"),
        "for now": RetryAfter("1m", "printer is warming up"),
    }
    raise errors[how]


@app.remote_step
def give_too_much(size: int) -> str:
    return '"' * size


@app.remote_step
def give_the_wrong_thing() -> int:
    return "five"  # type: ignore[return-value] - what an author does by mistake


@app.remote_step
def look_around() -> dict[str, Any]:
    here = step_context()
    here.heartbeat({"done": 1})
    here.stream("log").append("line")
    return {
        "run": here.run_id,
        "location": here.location,
        "attempt": here.attempt,
        "key": here.idempotency_key,
        "deadline": here.deadline.timestamp(),
        "headers": dict(here.headers),
        "cancelled": here.cancelled,
    }


@dataclass
class Hidden:
    seconds: float
    hidden: list[tuple[str, float]] = field(default_factory=list)

    def hide(self, delivery_id: str, seconds: float) -> None:
        self.hidden.append((delivery_id, seconds))


def a_task(name: str, *args: Any, **fields: Any) -> StepTask:
    kwargs = fields.pop("kwargs", {})
    task = StepTask(
        run_id="run-1", location="labels/print", epoch=5, attempt=1, queue="default", name=name,
        input=input_text(list(args), kwargs), dispatched_at=0.0, timeout=60.0, heartbeat=None, idempotency_key="key-1",
    )  # fmt: skip
    return replace(task, **fields)


def delivered(task: StepTask, *, id: str = "d-1", count: int = 1) -> TaskDelivery:
    return TaskDelivery(id=id, body=task.to_text(), receive_count=count)


def worker_on(services: Services, runner: Any = InlineStepRunner, **options: Any) -> RemoteWorker:
    return RemoteWorker(app, services.ports, name="w-1", steps=runner, options=EngineOptions(**options))


def results(services: Services) -> list[tuple[str, TaskOutcome]]:
    """Ids and outcomes of the result messages that were sent, in their order."""
    assert isinstance(services.runs, MemoryRunQueue)
    sent = [from_body(message.body) for message in services.runs.pending]
    assert all(isinstance(message, Deliver) and message.kind == "result" for message in sent)
    return [(message.id, outcome_from(message.body)) for message in sent if isinstance(message, Deliver)]


def outcome_of(services: Services, task: StepTask, **options: Any) -> TaskOutcome:
    assert worker_on(services).process([delivered(task)], **options) == []
    ((task_id, outcome),) = results(services)
    assert task_id == task.id
    return outcome


def test_arguments_and_result_go_by_the_annotations() -> None:
    services = in_memory()
    outcome = outcome_of(services, a_task("print_label", {"id": "o-1"}, kwargs={"copies": 2}))
    assert outcome == TaskOutcome(
        value='[{"text":"o-1 0"},{"text":"o-1 1"}]', started_at=services.clock.now(), worker="w-1"
    )
    (message,) = services.runs.receive()
    envelope = from_body(message.body)
    assert isinstance(envelope, Deliver)
    assert (envelope.run_id, envelope.name, envelope.kind) == ("run-1", "labels/print", "result")


def test_an_async_body_is_awaited() -> None:
    assert outcome_of(in_memory(), a_task("weigh", {"id": "o", "items": 3})).value == "1.5"


def test_the_body_can_look_around() -> None:
    services = in_memory()
    now = services.clock.now()
    outcome = outcome_of(services, a_task("look_around", attempt=2, headers={"traceparent": "00-1"}))
    assert outcome.value is not None
    for part in (
        "run-1",
        "labels/print",
        '"attempt":2',
        "key-1",
        f'"deadline":{now + 60}',
        "00-1",
        '"cancelled":false',
    ):
        assert part in outcome.value
    row = services.store.get_task("run-1", "labels/print:5:2")
    assert row is not None
    assert (row.picked_up_at, row.worker, row.progress, row.closed) == (now, "w-1", '{"done":1}', None)
    assert len(services.store.read_stream("run-1", "log")) == 1


@pytest.mark.parametrize(
    ("how", "retryable", "retry_after", "failure", "text"),
    [
        ("plainly", True, None, None, "ValueError: paper jam"),
        ("for good", False, None, "critical", "NonRetryableError: no such printer"),
        ("wholly", False, None, "rollback", "Jam: everything back"),
        ("for now", True, 60.0, None, "RetryAfter: printer is warming up"),
    ],
)
def test_a_body_that_raises_decides_what_may_follow(how, retryable, retry_after, failure, text) -> None:
    outcome = outcome_of(in_memory(), a_task("fail", how))
    assert (outcome.retryable, outcome.retry_after, outcome.failure) == (retryable, retry_after, failure)
    assert (outcome.value, str(outcome.error)) == (None, text)


@pytest.mark.parametrize(
    ("task", "text"),
    [
        (a_task("give_the_wrong_thing"), "NotStorable"),
        (a_task("give_too_much", 300_000), "LimitExceeded"),
        (a_task("give_too_much", 130_000), "LimitExceeded"),  # fits as a value, and not as a message
    ],
    ids=["wrong", "large", "large as a message"],
)
def test_a_result_that_cannot_be_kept_is_not_tried_again(task: StepTask, text: str) -> None:
    outcome = outcome_of(in_memory(), task)
    assert (outcome.retryable, outcome.failure) == (False, "critical")
    assert text in str(outcome.error)


@pytest.mark.parametrize("args", [(), ({"nothing": 1},), ({"id": "o"}, 2, 3)])
def test_arguments_that_this_code_does_not_take_may_fit_other_code(args: tuple[Any, ...]) -> None:
    outcome = outcome_of(in_memory(), a_task("print_label", *args))
    assert outcome.retryable
    assert outcome.error is not None


def test_what_is_not_wanted_any_more_is_dropped() -> None:
    services = in_memory()
    task = a_task("print_label", {"id": "o"})
    services.store.close_task("run-1", task.id, reason="cancelled", expires_at=9.0)
    assert worker_on(services).process([delivered(task)]) == []
    assert results(services) == []


def test_an_unknown_step_comes_back_and_is_reported_in_the_end() -> None:
    services = in_memory()
    task = delivered(a_task("engrave"))
    for count in range(1, UNKNOWN_TRIES):
        assert worker_on(services).process([replace(task, receive_count=count)]) == ["d-1"]
    assert results(services) == []
    assert worker_on(services).process([replace(task, receive_count=UNKNOWN_TRIES)]) == []
    ((_, outcome),) = results(services)
    assert outcome.retryable
    assert 'no worker knows remote step "engrave"' in str(outcome.error)


def test_a_message_that_is_no_task_comes_back_alone() -> None:
    services = in_memory()
    deliveries = [TaskDelivery(id="odd", body="{}"), delivered(a_task("weigh", {"id": "o"}))]
    assert worker_on(services).process(deliveries) == ["odd"]
    assert len(results(services)) == 1


def test_a_second_delivery_has_what_is_left_of_the_first_ones_time() -> None:
    services = in_memory()
    task = a_task("look_around")
    began = services.clock.now()
    services.store.start_task("run-1", task.id, worker="w-0", now=began, expires_at=began + 99)
    services.clock.advance(45)
    outcome = outcome_of(services, task)
    assert outcome.started_at == began
    assert f'"deadline":{began + 60}' in (outcome.value or "")


def test_a_delivery_after_the_attempts_time_is_not_begun() -> None:
    services = in_memory()
    task = a_task("look_around")
    services.store.start_task("run-1", task.id, worker="w-0", now=services.clock.now(), expires_at=1e12)
    services.clock.advance(60)
    outcome = outcome_of(services, task)
    assert "StepTimeout" in str(outcome.error)
    assert services.store.get_task("run-1", task.id).progress is None  # type: ignore[union-attr]


def test_a_body_gets_no_more_time_than_its_invocation_has() -> None:
    services = in_memory()
    outcome = outcome_of(services, a_task("look_around"), remaining=20.0)
    assert f'"deadline":{services.clock.now() + 16}' in (outcome.value or "")


def held() -> tuple[App[Any], list[Any]]:
    """An app with a step that waits until it is told that its result is not wanted."""
    waiting = App[Any]("waiting")
    contexts: list[Any] = []
    ended = threading.Event()

    @waiting.remote_step
    def hang() -> None:
        contexts.append(step_context())
        ended.wait(10)

    contexts.append(ended)
    return waiting, contexts


def test_a_body_that_takes_too_long_is_given_up_and_told() -> None:
    services = in_memory()
    waiting, contexts = held()
    worker = RemoteWorker(waiting, services.ports, steps=ThreadStepRunner)
    assert worker.process([delivered(a_task("hang", timeout=0.05))]) == []
    ended, context = contexts
    ended.set()
    assert context.cancelled
    ((_, outcome),) = results(services)
    assert outcome.retryable
    assert "StepTimeout: no result within 0.05 s" in str(outcome.error)


def test_a_task_is_hidden_anew_while_its_body_runs() -> None:
    services = in_memory()
    waiting, contexts = held()
    hidden = Hidden(seconds=0.04)
    worker = RemoteWorker(waiting, services.ports, steps=ThreadStepRunner)
    worker.process([delivered(a_task("hang", timeout=0.3))], visibility=hidden)
    contexts[0].set()
    assert len(hidden.hidden) >= 2
    assert set(hidden.hidden) == {("d-1", 0.04)}


def test_bodies_of_a_batch_run_side_by_side() -> None:
    both = threading.Barrier(2, timeout=10)
    meeting = App[Any]("meeting")

    @meeting.remote_step
    def meet() -> bool:
        both.wait()
        return True

    services = in_memory()
    worker = RemoteWorker(meeting, services.ports, steps=ThreadStepRunner)
    tasks = [delivered(a_task("meet", attempt=n), id=f"d-{n}") for n in (1, 2)]
    assert worker.process(tasks) == []
    assert [outcome.value for _, outcome in results(services)] == ["true", "true"]


def test_a_heartbeat_learns_that_the_result_is_not_wanted() -> None:
    services = in_memory()
    beating = App[Any]("beating")
    seen: list[bool] = []

    @beating.remote_step
    def beat() -> None:
        here = step_context()
        here.heartbeat(1)
        services.store.close_task("run-1", "labels/print:5:1", reason="cancelled", expires_at=1e12)
        here.heartbeat(2)  # too soon to be stored
        seen.append(here.cancelled)
        services.clock.advance(5)
        here.heartbeat(3)
        seen.append(here.cancelled)

    RemoteWorker(beating, services.ports, steps=InlineStepRunner).process([delivered(a_task("beat"))])
    row = services.store.get_task("run-1", "labels/print:5:1")
    assert row is not None
    assert (seen, row.progress) == ([False, True], "1")


@pytest.mark.parametrize(("heartbeat", "stored"), [(None, "0"), (9.0, "3"), (1.5, "4")])
def test_heartbeats_are_stored_as_often_as_their_step_needs(heartbeat: float | None, stored: str) -> None:
    services = in_memory()
    beating = App[Any]("beating")

    @beating.remote_step
    def beat() -> None:
        for n in range(5):
            step_context().heartbeat(n)
            services.clock.advance(1.0)

    task = a_task("beat", heartbeat=heartbeat)
    RemoteWorker(beating, services.ports, steps=InlineStepRunner).process([delivered(task)])
    row = services.store.get_task("run-1", task.id)
    assert row is not None
    assert row.progress == stored


@dataclass
class Play:
    """What one play of the worker came to, with its deaths."""

    results: Sequence[tuple[str, TaskOutcome]]
    calls: Sequence[str]
    executions: int
    left: int


def play(task: StepTask, *, crash: int | None = None, after: bool = False, fail: str | None = None) -> Play:
    """Delivers the task until its queue is empty."""
    services = in_memory()
    faults = Faults(services.clock.advance)
    mocks = Mocks()
    executions: Counter[tuple[str, str]] = Counter()
    if crash is not None:
        faults.crash_at(crash, after=after)
    if fail is not None:
        faults.fail_next_call(fail, after=after)
    services.steps.send(task)
    for _ in range(20):
        received = services.steps.receive(1)
        if not received and services.steps.next_visible_at() is None:
            break
        container = WorkerContainer(
            app, services.ports, code_version="1", options=EngineOptions(), perform=faults.perform,
            steps=lambda: TestSteps(InlineStepRunner(), mocks, services.clock, executions),
        )  # fmt: skip
        for one in received:
            delivery = TaskDelivery(id=one.receipt, body=one.body, receive_count=one.receive_count)
            try:
                failed = container.process([delivery], remaining=100.0)
            except InvocationKilled:
                continue
            if failed:
                services.steps.change_visibility(one.receipt, 5.0)
            else:
                services.steps.acknowledge(one.receipt)
        services.clock.advance(10)
    assert not faults.pending
    return Play(results(services), faults.calls, executions["run-1", task.location], len(services.steps.pending))


CRASHED = [
    a_task("print_label", {"id": "o-1"}, timeout=3600),
    a_task("look_around", timeout=3600),
    a_task("fail", "plainly", timeout=3600),
]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("task", CRASHED, ids=lambda task: task.name)
def test_a_worker_that_dies_at_any_call_loses_nothing(task: StepTask, after: bool) -> None:
    clean = play(task)
    assert (len(clean.results), clean.executions, clean.left) == (1, 1, 0)
    for number, name in enumerate(clean.calls, start=1):
        ways: list[dict[str, Any]] = [{"crash": number}]
        if name != "store.append_stream":  # which the body calls: it fails with it, as a local step's does
            ways.append({"fail": name})
        for troubled in (play(task, after=after, **way) for way in ways):
            assert troubled.left == 0, name
            assert 1 <= troubled.executions <= 2, name
            assert troubled.results, name
            for task_id, outcome in troubled.results:
                assert task_id == task.id
                expected = clean.results[0][1]
                assert (outcome.error, outcome.retryable) == (expected.error, expected.retryable), name


LANE = LaneSpec(name="queue:labels", limit=1)


def in_lane(services: Services, task: StepTask) -> Granted | Waiting | Full:
    ticket = Ticket(holder=task.holder, action=task_action(task), arrived_at=services.clock.now())
    return enter(services.ports, LANE, ticket)


@pytest.mark.parametrize("closed", [False, True], ids=["performed", "dropped"])
def test_an_attempt_gives_up_its_slot_to_the_next(closed: bool) -> None:
    services = in_memory()
    first, second = (a_task("weigh", {"id": "o"}, attempt=n, lane=LANE.name) for n in (1, 2))
    assert [type(in_lane(services, task)) for task in (first, second)] == [Granted, Waiting]
    if closed:
        services.store.close_task("run-1", first.id, reason="cancelled", expires_at=1e12)
    assert worker_on(services).process([delivered(first)]) == []
    assert [message.body for message in services.steps.pending] == [second.to_text()]
    assert len(results(services)) == (0 if closed else 1)


def test_a_slot_that_could_not_be_given_up_is_given_up_by_the_next_delivery() -> None:
    services = in_memory()
    first, second = (a_task("weigh", {"id": "o"}, attempt=n, lane=LANE.name) for n in (1, 2))
    for task in (first, second):
        in_lane(services, task)
    faults = Faults(services.clock.advance)
    container = WorkerContainer(
        app, services.ports, code_version="1", options=EngineOptions(), perform=faults.perform, steps=InlineStepRunner
    )
    faults.fail_next_call("store.read_lane")
    assert container.process([delivered(first)], remaining=100.0) == ["d-1"]
    assert container.process([delivered(first)], remaining=100.0) == []
    assert {task_id for task_id, _ in results(services)} == {first.id}
    assert [message.body for message in services.steps.pending] == [second.to_text()]
