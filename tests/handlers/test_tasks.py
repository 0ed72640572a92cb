"""The routes for workers in any language."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from durable import App
from durable.adapters.memory import MemoryTaskSource
from durable.engine.claims import MARGIN_SECONDS, TaskClaims
from durable.errors import ErrorInfo
from durable.model.envelope import Deliver, from_body
from durable.model.task import StepTask, TaskOutcome, input_text, outcome_from
from durable.model.tokens import Claims, sign
from durable.testing import TestEnvironment
from durable.testing.services import Services
from handlers.api import build
from handlers.runs import Runs
from tests.handlers.test_api import Caller

app = App("labels")


class Label(BaseModel):
    text: str


@app.remote_step
def print_label(order: str, *, copies: int = 1) -> list[Label]:
    return [Label(text=order)] * copies


TASK = StepTask(
    run_id="run-1", location="labels/print", epoch=5, attempt=2, queue="gpu", name="print_label",
    input=input_text(["o-1"], {"copies": 2}), dispatched_at=0.0, timeout=60.0, heartbeat=10.0, idempotency_key="key-1",
    headers={"traceparent": "00-1"},
)  # fmt: skip


class WorkerCaller(Caller):
    """A worker, and what it has been told to do."""

    def __init__(self) -> None:
        env = TestEnvironment(app)
        super().__init__(env)
        self.services: Services = env.world.services
        claims = TaskClaims(app, env.ports, lambda queue: MemoryTaskSource(self.queue) if queue == "gpu" else None)
        self._api = build(Runs(app, env, env.ports), claims)

    @property
    def queue(self) -> Any:
        return self.services.steps

    def claimed(self, **fields: Any) -> str:
        """The path of a task that is claimed."""
        self.queue.send(replace(TASK, **fields))
        return "/tasks/" + self("POST", "/queues/gpu/claim", {"worker": "w-1"}).body["token"]

    @property
    def results(self) -> list[TaskOutcome]:
        sent = [from_body(message.body) for message in self.services.runs.pending]
        assert {(it.run_id, it.id, it.name, it.kind) for it in sent if isinstance(it, Deliver)} <= {
            ("run-1", TASK.id, TASK.location, "result")
        }
        return [outcome_from(message.body) for message in sent if isinstance(message, Deliver)]

    @property
    def row(self) -> Any:
        return self.services.store.get_task("run-1", TASK.id)


BODIES: dict[str, Any] = {"heartbeat": None, "complete": {"result": []}, "fail": {"error": "e"}}


@pytest.fixture
def call() -> WorkerCaller:
    return WorkerCaller()


def test_a_claim_gives_the_task_and_takes_it_out_of_its_queue(call: WorkerCaller) -> None:
    call.queue.send(TASK)
    answer = call("POST", "/queues/gpu/claim", {"worker": "w-1"})
    assert answer.status == 200
    assert answer.body["task"] == {
        "name": "print_label",
        "args": ["o-1"],
        "kwargs": {"copies": 2},
        "attempt": 2,
        "run_id": "run-1",
        "location": "labels/print",
        "queue": "gpu",
        "idempotency_key": "key-1",
        "timeout": 60.0,
        "heartbeat": 10.0,
        "headers": {"traceparent": "00-1"},
    }
    assert not call.queue.pending
    assert (call.row.worker, call.row.picked_up_at) == ("w-1", call.services.clock.now())


@pytest.mark.parametrize("body", [None, {"wait": 0}, {"wait": 20, "worker": "w"}])
def test_without_a_task_there_is_no_content(call: WorkerCaller, body: Any) -> None:
    answer = call("POST", "/queues/gpu/claim", body)
    assert (answer.status, answer.body) == (204, None)


def test_tasks_that_nobody_wants_any_more_are_not_handed_out(call: WorkerCaller) -> None:
    call.services.store.close_task("run-1", TASK.id, reason="cancelled", expires_at=9.0)
    other = replace(TASK, attempt=3)
    for task in (TASK, other):
        call.queue.send(task)
    assert call("POST", "/queues/gpu/claim").body["task"]["attempt"] == 3
    assert call("POST", "/queues/gpu/claim").status == 204
    assert not call.queue.pending


def test_an_attempt_whose_time_is_over_has_timed_out(call: WorkerCaller) -> None:
    call.services.store.start_task("run-1", TASK.id, worker="w-0", now=call.services.clock.now(), expires_at=1e12)
    call.services.clock.advance(61)
    call.queue.send(TASK)
    assert call("POST", "/queues/gpu/claim").status == 204
    assert "StepTimeout" in str(call.results[0].error)


def test_a_message_that_is_no_task_stays_for_the_dead_letters(call: WorkerCaller) -> None:
    call.queue.enqueue("{}")
    call.queue.send(TASK)
    assert call("POST", "/queues/gpu/claim").status == 200
    assert len(call.queue.pending) == 1


def test_a_result_reaches_the_run(call: WorkerCaller) -> None:
    path = call.claimed()
    began = call.services.clock.now()
    call.services.clock.advance(5)
    answer = call("POST", f"{path}/complete", {"result": [{"text": "a"}]})
    assert (answer.status, answer.body) == (200, {"cancelled": False})
    assert call.results == [TaskOutcome(value='[{"text":"a"}]', started_at=began, worker="w-1")]


def test_twice_is_harmless(call: WorkerCaller) -> None:
    path = call.claimed()
    for _ in range(2):
        assert call("POST", f"{path}/complete", {"result": []}).body == {"cancelled": False}
    assert call("POST", f"{path}/heartbeat").body == {"cancelled": False}
    assert len(call.results) <= 2  # with one id: its run takes the first


def test_a_result_that_the_workflow_could_not_read_is_refused_and_may_be_sent_again(call: WorkerCaller) -> None:
    path = call.claimed()
    status, type_, detail = call.problem("POST", f"{path}/complete", {"result": [{"txt": "a"}]})
    assert (status, type_) == (422, "invalid-input")
    assert "remote step" in detail
    assert call.results == []
    assert call("POST", f"{path}/complete", {"result": []}).status == 200


@pytest.mark.parametrize("size", [140_000, 300_000])
def test_a_result_that_is_no_message_is_told_by_reference(call: WorkerCaller, size: int) -> None:
    path = call.claimed(name="unknown here")
    assert call("POST", f"{path}/complete", {"result": '"' * size}).status == 200
    (sent,) = (from_body(message.body) for message in call.services.runs.pending)
    assert isinstance(sent, Deliver)
    assert sent.body.startswith("blob:")


@pytest.mark.parametrize(
    ("body", "error", "more"),
    [
        ({"error": "paper jam"}, ErrorInfo(type="Error", message="paper jam"), {}),
        (
            {"error": {"type": "Jam", "module": "shop.errors", "message": "m", "data": {"n": 1}}, "retry_after": 5},
            ErrorInfo(type="Jam", module="shop.errors", message="m", data={"n": 1}),
            {"retry_after": 5.0},
        ),
        (
            {"error": "no such printer", "retryable": False},
            ErrorInfo(type="Error", message="no such printer"),
            {"retryable": False, "failure": "critical"},
        ),
    ],
)
def test_a_failure_reaches_the_run(call: WorkerCaller, body: Any, error: ErrorInfo, more: dict[str, Any]) -> None:
    path = call.claimed()
    assert call("POST", f"{path}/fail", body).body == {"cancelled": False}
    (outcome,) = call.results
    assert outcome == TaskOutcome(error=error, started_at=outcome.started_at, worker="w-1", **more)


def test_a_heartbeat_tells_progress_and_learns_of_the_end(call: WorkerCaller) -> None:
    path = call.claimed()
    call.services.clock.advance(3)
    assert call("POST", f"{path}/heartbeat", {"progress": {"done": 1}}).body == {"cancelled": False}
    assert (call.row.progress, call.row.heartbeat_at) == ('{"done":1}', call.services.clock.now())
    call.services.store.close_task("run-1", TASK.id, reason="timed out", expires_at=1e12)
    assert call("POST", f"{path}/heartbeat").body == {"cancelled": True}
    assert call("POST", f"{path}/complete", {"result": []}).body == {"cancelled": True}


def test_a_heartbeat_that_tells_too_much_is_refused(call: WorkerCaller) -> None:
    path = call.claimed()
    assert call.problem("POST", f"{path}/heartbeat", {"progress": "x" * 5000})[0] == 413


@pytest.mark.parametrize("action", ["heartbeat", "complete", "fail"])
def test_a_token_is_no_longer_good_when_its_attempt_is_over(call: WorkerCaller, action: str) -> None:
    path = call.claimed()
    body = BODIES[action]
    call.services.clock.advance(60 + MARGIN_SECONDS - 1)
    assert call("POST", f"{path}/{action}", body).status == 200
    call.services.clock.advance(1)
    assert call.problem("POST", f"{path}/{action}", body)[:2] == (410, "token-expired")


@pytest.mark.parametrize("action", ["heartbeat", "complete", "fail"])
def test_a_token_that_was_not_made_for_this_is_refused(call: WorkerCaller, action: str) -> None:
    path = call.claimed()
    (key,) = call.services.signing.keys()
    claims = Claims(kind="callback", run_id="run-1", location=TASK.location, id=TASK.id)
    other = sign(key, claims)
    forged = sign(b"x" * 32, replace(claims, kind="task"))
    body = BODIES[action]
    for token in (other, forged, "nonsense", path.removeprefix("/tasks/")[:-1]):
        status, type_, detail = call.problem("POST", f"/tasks/{token}/{action}", body)
        assert (status, type_) == (401, "invalid-token")
        assert token not in detail
    assert call.results == []


@pytest.mark.parametrize("body", [{"wait": 21}, {"wait": -1}, {"worker": ""}, {"queue": "gpu"}, []])
def test_a_claim_that_is_not_understood_is_refused(call: WorkerCaller, body: Any) -> None:
    call.queue.send(TASK)
    assert call.problem("POST", "/queues/gpu/claim", body)[0] == 422
    assert call.row is None


def test_a_queue_that_is_none_is_refused(call: WorkerCaller) -> None:
    status, type_, detail = call.problem("POST", "/queues/labels/claim")
    assert (status, type_) == (404, "queue-not-found")
    assert "DURABLE_STEPS_QUEUES" in detail
