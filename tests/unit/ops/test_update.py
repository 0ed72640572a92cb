"""Updates in the replay core: handed out again until they are answered, and an answer is recorded once."""

from __future__ import annotations

from typing import Any

import pytest

from durable.errors import Diverged, OperationInsideStep, UnansweredUpdate, UpdateAnswered, WaitTimeout
from durable.model.entry import Entry
from durable.model.message import StoredMessage
from durable.model.reply import Reply, reply_from
from durable.ops.sleep import SleepOperation
from durable.ops.update import AnswerOperation, UpdateOperation, UpdateRequest
from tests.properties.virtual_engine import STARTED_AT, Ctx, Opened, open_run

MESSAGE = StoredMessage(id="u-1", name="rename", body='"ada"', arrived_at=STARTED_AT + 1, kind="update")
TAKEN = Entry(location="rename", kind="wait", epoch=1, n=1, at=STARTED_AT + 2, messages=(MESSAGE,))
ANSWERED = Entry(
    location="rename/answer", kind="update", epoch=1, n=2, at=STARTED_AT + 3, value=Reply("u-1", value=3).to_text()
)


def ask(ctx: Ctx, **options: Any) -> UpdateOperation:
    return UpdateOperation(ctx.execution, "rename", str, int, **options)


async def answers_and_sleeps(ctx: Ctx) -> str:
    request = await ask(ctx)
    request.respond(len(request.arg))
    await SleepOperation(ctx.execution, 60)
    return str(request.arg)


def after(history: list[Entry], workflow: Any = answers_and_sleeps) -> Opened:
    opened = open_run(workflow, history)
    opened.execution.advance()
    return opened


def test_it_takes_the_earliest_update_of_its_name() -> None:
    (wait,) = after([]).execution.take()
    assert isinstance(wait, UpdateOperation)
    assert wait.channels == ("update:rename",)
    assert wait.claim([MESSAGE, MESSAGE]) == (MESSAGE,)
    assert wait.claim([]) == ()


def test_an_answer_is_handed_to_the_engine_though_nothing_awaits_it() -> None:
    opened = after([TAKEN])
    answer, sleep = opened.execution.take()
    assert isinstance(answer, AnswerOperation)
    assert (answer.location, answer.kind, sleep.kind) == ("rename/answer", "update", "sleep")
    assert reply_from(answer.text or "") == Reply("u-1", value=3)


def test_a_recorded_answer_is_not_recorded_again() -> None:
    opened = after([TAKEN, ANSWERED])
    assert [operation.kind for operation in opened.execution.take()] == ["sleep"]
    assert opened.execution.live


def test_a_recorded_answer_that_the_code_does_not_give_is_a_divergence() -> None:
    async def silent(ctx: Ctx) -> None:
        await ask(ctx)
        await SleepOperation(ctx.execution, 60)

    with pytest.raises(Diverged, match="rename/answer"):
        after([TAKEN, ANSWERED], silent)


def test_answering_twice_and_taking_another_before_the_answer_are_misuse() -> None:
    async def twice(ctx: Ctx) -> None:
        request = await ask(ctx)
        request.reject("no")
        request.respond(1)

    async def greedy(ctx: Ctx) -> None:
        await ask(ctx)
        await ask(ctx)

    with pytest.raises(UpdateAnswered):
        after([TAKEN], twice)
    with pytest.raises(UnansweredUpdate):
        after([TAKEN], greedy)


def test_a_wait_that_timed_out_raises() -> None:
    async def patient(ctx: Ctx) -> str:
        try:
            await ask(ctx, timeout=5)
        except WaitTimeout:
            return "nobody"
        return "somebody"

    opened = after([], patient)
    (wait,) = opened.execution.take()
    assert isinstance(wait, UpdateOperation)
    value, error = wait.on_deadline()
    opened.execution.deliver(
        Entry(location=wait.location, kind="wait", epoch=1, n=1, at=STARTED_AT + 5, value=value, error=error)
    )
    assert opened.execution.outcome.value == "nobody"  # type: ignore[union-attr]


def test_a_request_is_of_no_use_outside_its_workflow() -> None:
    with pytest.raises(OperationInsideStep):
        UpdateRequest[str, int]("u-1").respond(1)
    assert UpdateRequest[str, int]("u-1") == UpdateRequest[str, int]("u-1")
