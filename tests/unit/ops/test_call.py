"""Calls of remote steps as the replay core sees them."""

from __future__ import annotations

from typing import Any

import pytest

from durable import App, Backoff, Call, StepFailed
from durable.errors import LimitExceeded, NotStorable, UndecodableHistory
from durable.model.call import order_from
from durable.model.entry import Entry
from durable.model.message import StoredMessage
from durable.model.task import TaskOutcome
from durable.ops.call import CallOperation, terms_of
from durable.ops.effect import Stamp
from tests.properties.virtual_engine import STARTED_AT, Ctx, Opened, open_run

app = App("calls")
PLAIN = Call()
STAMP = Stamp(1, None)


@app.remote_step(queue="labels", retries=5, timeout="10m", heartbeat="1m")
def print_label(order: str, copies: int = 1) -> list[str]:
    return [order] * copies


def parked(call: Call = PLAIN, *args: Any, history: tuple[Entry, ...] = ()) -> tuple[Opened, CallOperation]:
    """A run that waits for one call, and the call."""

    async def workflow(ctx: Ctx) -> Any:
        return await CallOperation(ctx.execution, None, call, print_label, args or ("o-1",), {"copies": 2})

    opened = open_run(workflow, history=history)
    opened.execution.advance()
    [operation] = opened.execution.journal.parked.values() if history else opened.execution.take()
    assert isinstance(operation, CallOperation)
    return opened, operation


def entry(mark: str, n: int, **content: Any) -> Entry:
    return Entry(
        location="print_label", mark=mark, kind="call", fn="print_label", epoch=7, n=n, at=STARTED_AT + n, **content
    )


def result(id: str, outcome: TaskOutcome) -> StoredMessage:
    return StoredMessage(id=id, name="print_label", kind="result", body=outcome.to_text(), arrived_at=STARTED_AT)


def test_what_the_call_does_not_say_is_the_remote_steps_own() -> None:
    terms = terms_of(print_label, Call(retries=0, pickup_timeout="1h"))
    assert (terms.queue, terms.retries, terms.timeout, terms.heartbeat, terms.pickup) == ("labels", 0, 600, 60, 3600)
    usual = print_label.using(Call(queue="gpu", backoff=Backoff("1m", max="1h"), total="1 day"))
    terms = terms_of(usual, Call(queue="cpu"))
    assert (terms.queue, terms.backoff.base, terms.total, terms.retries) == ("cpu", 60, 86_400, 5)


def test_the_open_entry_has_all_that_it_takes_to_send_the_task() -> None:
    _, call = parked()
    order = order_from(call.opening(STAMP))
    assert (order.name, order.queue, order.input) == ("print_label", "labels", '{"args":["o-1"],"kwargs":{"copies":2}}')
    assert call.next_attempt == 1


def test_the_next_attempt_has_the_arguments_of_the_first() -> None:
    _, first = parked()
    opening = first.opening(STAMP)
    history = (entry("?1", 1, value=opening), entry("@1", 2, attempts=1, retry_at=STARTED_AT + 9))
    _, call = parked(PLAIN, "other", history=history)
    assert (call.open, call.retry_at, call.next_attempt) == (None, STARTED_AT + 9, 2)
    assert order_from(call.opening(STAMP)).input == order_from(opening).input


def test_only_the_result_of_the_attempt_that_is_open_is_its_answer() -> None:
    _, first = parked()
    opening = first.opening(STAMP)
    _, call = parked(history=(entry("?1", 1, value=opening), entry("@1", 2, attempts=1), entry("?2", 3, value=opening)))
    outcome = TaskOutcome(value="[]", started_at=STARTED_AT, worker="w")
    late, current = result("print_label:7:1", outcome), result("print_label:7:2", outcome)
    assert call.claim([late]) == ()
    assert call.claim([late, current]) == (current,)


@pytest.mark.parametrize(
    ("argument", "refusal"), [(object(), NotStorable), (b"\xff", NotStorable), ("x" * 300_000, LimitExceeded)]
)
def test_arguments_that_cannot_be_sent_are_refused_at_the_call(argument: object, refusal: type[Exception]) -> None:
    async def workflow(ctx: Ctx) -> str:
        with pytest.raises(refusal):
            CallOperation(ctx.execution, None, PLAIN, print_label, (argument,), {})
        return "refused"

    opened = open_run(workflow)
    opened.execution.advance()
    assert opened.execution.finished


def test_a_failure_is_that_of_a_step() -> None:
    _, call = parked()
    error = StepFailed("x", 1, call.misfit(TaskOutcome(value="7", started_at=0, worker="w")) or pytest.fail("fits"))
    with pytest.raises(StepFailed, match=r"failed after 6 attempts: InvalidInput: the result of remote step"):
        call.decode(entry("", 9, error=error.error, attempts=6, failure="critical"))


def test_a_message_that_is_no_outcome_is_not_read() -> None:
    _, call = parked()
    with pytest.raises(UndecodableHistory, match="the result of a remote step"):
        call.on_messages([StoredMessage(id="m", name="print_label", kind="result", body="{}", arrived_at=0)])
