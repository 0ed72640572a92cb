"""A worker process takes tasks one after another, and leaves nothing hidden when it stops."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from durable import App, step_context
from durable.adapters.memory import MemoryTaskSource
from durable.engine.serving import Serving
from durable.engine.worker import RemoteWorker
from durable.errors import StoreUnavailable
from durable.model.task import StepTask, input_text
from durable.testing.services import Services, in_memory

LONG = 10.0
"""Seconds after which a test has failed."""


def a_task(name: str, attempt: int = 1) -> StepTask:
    return StepTask(
        run_id="run-1", location="s", epoch=5, attempt=attempt, queue="gpu", name=name, input=input_text([], {}),
        dispatched_at=0.0, timeout=600.0, heartbeat=None, idempotency_key="key",
    )  # fmt: skip


class Waiting(MemoryTaskSource):
    """Waits a little for a task, as SQS does."""

    def __init__(self, services: Services) -> None:
        super().__init__(services.steps)  # type: ignore[arg-type]
        self.fails = 0
        self.asked = threading.Event()
        self.fails_to_delete = 0

    def receive(self, *, wait: float, hidden: float) -> Any:
        self.asked.set()
        if self.fails:
            self.fails -= 1
            raise StoreUnavailable("SQS: no answer")
        found = super().receive(wait=wait, hidden=hidden)
        if not found:
            threading.Event().wait(0.005)
        return found

    def acknowledge(self, delivery_id: str) -> None:
        if self.fails_to_delete:
            self.fails_to_delete -= 1
            raise StoreUnavailable("SQS: no answer")
        super().acknowledge(delivery_id)


class Bench:
    """A worker at a queue, with a step that waits for the test."""

    def __init__(self, concurrency: int = 1) -> None:
        self.services = in_memory()
        self.source = Waiting(self.services)
        self.begun = threading.Semaphore(0)
        self.may_end = threading.Event()
        self.contexts: list[Any] = []
        app = App[Any]("worker")

        @app.remote_step
        def wait() -> None:
            self.contexts.append(step_context())
            self.begun.release()
            self.may_end.wait(LONG)

        @app.remote_step
        def quick() -> int:
            return 1

        self.told: list[int] = []
        worker = RemoteWorker(app, self.services.ports, told=lambda task, _: self.told.append(task.attempt))
        self.serving = Serving(worker, self.source, concurrency=concurrency)

    @property
    def queued(self) -> Any:
        """What is in the queue, hidden or not."""
        return self.services.steps.pending

    @property
    def pending(self) -> int:
        """How many of these are not hidden."""
        return sum(it.visible_at <= self.services.clock.now() for it in self.queued)

    @property
    def hidden(self) -> list[float]:
        """For how many seconds each still is."""
        return [it.visible_at - self.services.clock.now() for it in self.queued]


@contextmanager
def working(concurrency: int = 1) -> Iterator[Bench]:
    bench = Bench(concurrency)
    bench.serving.start()
    yield bench
    bench.may_end.set()
    bench.serving.stop()
    assert bench.serving.wait(LONG)


def until(condition: Any) -> None:
    for _ in range(2000):
        if condition():
            return
        threading.Event().wait(0.005)
    raise AssertionError("it has not come to that")


def test_tasks_are_performed_and_deleted() -> None:
    with working() as bench:
        for attempt in (1, 2, 3):
            bench.services.steps.send(a_task("quick", attempt))
        until(lambda: not bench.queued)
        assert sorted(bench.told) == [1, 2, 3]


def test_as_many_tasks_run_side_by_side_as_are_allowed() -> None:
    with working(concurrency=2) as bench:
        for attempt in (1, 2, 3):
            bench.services.steps.send(a_task("wait", attempt))
        assert bench.begun.acquire(timeout=LONG)
        assert bench.begun.acquire(timeout=LONG)
        assert not bench.begun.acquire(timeout=0.05)


def test_what_has_begun_may_end_when_the_worker_stops() -> None:
    with working() as bench:
        bench.services.steps.send(a_task("wait"))
        assert bench.begun.acquire(timeout=LONG)
        bench.serving.stop()
        bench.services.steps.send(a_task("quick", 2))
        assert not bench.serving.wait(0.02)
        bench.may_end.set()
        assert bench.serving.wait(LONG)
        assert (bench.told, len(bench.queued)) == ([1], 1)


def test_what_does_not_end_in_time_is_given_back_and_told() -> None:
    with working() as bench:
        bench.services.steps.send(a_task("wait"))
        assert bench.begun.acquire(timeout=LONG)
        bench.serving.stop()
        assert bench.pending == 0
        assert bench.serving.give_back() == 1
        assert bench.pending == 1
        assert bench.contexts[0].cancelled
        bench.may_end.set()
        assert bench.serving.wait(LONG)
        assert bench.pending == 1  # what came after all was another worker's by then


def test_a_task_that_came_while_the_worker_stopped_is_given_back() -> None:
    bench = Bench()
    bench.serving.stop()
    bench.services.steps.send(a_task("quick"))
    (delivery,) = bench.source.receive(wait=0, hidden=60)
    bench.serving._perform(delivery)
    assert (bench.told, bench.pending) == ([], 1)


def test_a_task_that_comes_back_is_hidden_for_a_while() -> None:
    with working() as bench:
        bench.services.steps.send(a_task("unknown"))
        until(lambda: bench.hidden == [5.0])


def test_a_task_that_cannot_be_deleted_stops_nothing() -> None:
    with working() as bench:
        bench.source.fails_to_delete = 1
        bench.services.steps.send(a_task("quick", 1))
        bench.services.steps.send(a_task("quick", 2))
        until(lambda: len(bench.told) == 2)
        until(lambda: len(bench.queued) == 1)


@pytest.mark.filterwarnings("ignore")
def test_a_queue_that_does_not_answer_is_asked_again_later() -> None:
    with working() as bench:
        until(bench.source.asked.is_set)
        bench.source.fails = 1
        until(lambda: bench.source.fails == 0)
        bench.serving.stop()  # also ends the pause
        assert bench.serving.wait(LONG)
