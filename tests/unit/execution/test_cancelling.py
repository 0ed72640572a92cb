"""A recorded cancellation is handed out in its place: once to every task, typed, and the same on every replay."""

import asyncio
from typing import Any

import pytest

from durable import failures
from durable.errors import Diverged, RunCancelled, StepFailed
from durable.execution import Execution
from durable.model.entry import Entry
from tests.properties.virtual_engine import Ctx, Opened, open_run

LATE = 2_000_000.0


def cancellation(n: int, *keys: str) -> Entry:
    names = ",".join(f'"{key}"' for key in keys)
    return Entry(location="cancel", mark="^", kind="cancel", epoch=1, n=n, at=LATE, value=f"[{names}]")


def result(location: str, n: int, **facts: Any) -> Entry:
    return Entry(location=location, kind=facts.pop("kind", "step"), epoch=1, n=n, at=LATE, **facts)


def opened(workflow: Any, *history: Entry) -> Opened:
    run = open_run(workflow, history)
    run.execution.advance()
    return run


def cancel(execution: Execution) -> list[str]:
    """Cancels everything that is waited for now; what was."""
    execution.take()
    keys = execution.cancellable()
    execution.cancel(cancellation(9, *keys))
    return keys


def note(what: str) -> str:
    return what


note.__qualname__ = "note"


async def waits(ctx: Ctx) -> str:
    try:
        await ctx.next("go")
    except RunCancelled:
        ctx.note("cancelled")
        raise
    return "went"


def test_what_is_waited_for_raises_run_cancelled() -> None:
    run = opened(waits)
    assert cancel(run.execution) == ["go"]
    assert run.result.startswith("raised RunCancelled")
    assert run.execution.ended_by_cancellation


def test_a_replay_does_the_same() -> None:
    run = opened(waits, cancellation(1, "go"))
    assert run.execution.cancelled
    assert run.result.startswith("raised RunCancelled")


def test_before_its_place_nothing_is_cancelled() -> None:
    async def two(ctx: Ctx) -> None:
        await ctx.step("first", note, "a")
        ctx.note("after the first")
        await ctx.sleep(10)

    run = opened(two, result("first", 1, fn="note", value='"a"'), cancellation(2, "sleep"))
    assert [what for _, what, _ in run.ctx.trace] == ["called", "after the first"]
    assert run.result.startswith("raised RunCancelled")


def test_time_passes_with_it() -> None:
    async def asks(ctx: Ctx) -> float:
        try:
            await ctx.sleep(10)
        except RunCancelled:
            return ctx.now()
        return 0.0

    assert opened(asks, cancellation(1, "sleep")).result == f"returned {LATE}"


def test_a_late_result_of_a_step_is_skipped() -> None:
    async def one(ctx: Ctx) -> str:
        try:
            return await ctx.step("slow", note, "a")
        except RunCancelled:
            await ctx.sleep(1)
            return "cleaned up"

    history = (cancellation(1, "slow"), result("slow", 2, fn="note", value='"a"'), result("sleep", 3, kind="sleep"))
    run = opened(one, *history)
    assert run.result == "returned 'cleaned up'"
    assert [entry.key for entry in run.execution.skipped] == ["slow"]


async def stubborn(ctx: Ctx, _item: object = None) -> str:
    for _ in range(3):
        try:
            await ctx.sleep(10)
        except asyncio.CancelledError as error:
            ctx.note("branch", type(error).__name__)
            await ctx.sleep(20)
            ctx.note("cleaned up")
            raise
    return "slept"


async def grouped(ctx: Ctx) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(stubborn(ctx))
        group.create_task(stubborn(ctx))


AROUND: dict[str, Any] = {
    "join": lambda ctx: ctx.join("j", {"a": stubborn, "b": stubborn}),
    "race": lambda ctx: ctx.race("r", {"a": stubborn, "b": stubborn}),
    "map": lambda ctx: ctx.map("m", [1, 2], stubborn),
    "try_map": lambda ctx: ctx.try_map("t", [1, 2], stubborn),
    "try_block": lambda ctx: ctx.try_block("b", stubborn),
    "retrying": lambda ctx: ctx.retrying("a", stubborn, 3),
    "gather": lambda ctx: asyncio.gather(stubborn(ctx), stubborn(ctx)),
    "group": grouped,
    "task": lambda ctx: asyncio.create_task(stubborn(ctx)),
    "shield": lambda ctx: asyncio.shield(stubborn(ctx)),
    "wait_for": lambda ctx: asyncio.wait_for(stubborn(ctx), 1000),
    "event": lambda _: asyncio.Event().wait(),
}


@pytest.mark.parametrize("around", AROUND)
def test_whatever_it_waits_in_the_code_gets_it_typed_and_each_task_once(around: str) -> None:
    async def workflow(ctx: Ctx) -> Any:
        task = asyncio.create_task(stubborn(ctx)) if around == "event" else None
        try:
            return await AROUND[around](ctx)
        except RunCancelled:
            ctx.note("main")
            if task is not None:
                await asyncio.wait([task])
            raise

    run = opened(workflow)
    cancel(run.execution)
    n = 10
    while not run.execution.finished:
        for operation in run.execution.take():
            run.execution.deliver(result(operation.location, n, kind="sleep"))
            n += 1
    seen = [(what, detail) for _, what, detail in run.ctx.trace]
    branches = [detail for what, detail in seen if what == "branch"]
    assert set(branches) == {"RunCancelled"}
    assert seen.count(("main", "")) == 1
    if around != "shield":  # a shielded task outlives its waiter
        assert seen.count(("cleaned up", "")) == len(branches)
    assert run.result.startswith("raised RunCancelled")


def test_clean_up_may_use_timeouts_and_groups() -> None:
    async def workflow(ctx: Ctx) -> str:
        try:
            await asyncio.Event().wait()
        except RunCancelled:
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(failing())
                    group.create_task(ctx.sleep(10))
            except* ValueError:
                ctx.note("an error of the clean-up")
        return "cleaned up"

    async def failing() -> None:
        raise ValueError

    run = open_run(workflow, [cancellation(1)])
    run.execution.advance()
    assert run.result == "returned 'cleaned up'"
    assert ("", "an error of the clean-up", "") in run.ctx.trace


def test_code_that_waits_for_something_else_has_diverged() -> None:
    run = open_run(waits, [cancellation(1, "stop")])
    with pytest.raises(Diverged, match='cancelled while it waited for "stop"'):
        run.execution.advance()


def test_what_lay_in_an_iteration_that_is_over_is_not_missed() -> None:
    async def looping(ctx: Ctx) -> Any:
        return await ctx.loop("l", body, state=0, history=1)

    async def body(ctx: Ctx, state: int) -> Any:
        raise AssertionError("not executed again")

    history = (cancellation(1, "l[0]/sleep"), result("l", 2, kind="loop", value="5"))
    assert opened(looping, *history).result == "returned 5"


def test_errors_know_the_entries_that_they_come_from() -> None:
    async def failing(ctx: Ctx) -> None:
        try:
            await ctx.step("pay", note, "a")
        except StepFailed as failed:
            raise RuntimeError("wrapped") from failed

    error = failures.record(ValueError("no"))
    run = opened(failing, result("pay", 1, fn="note", error=error, failure="critical", attempts=1))
    outcome: Any = run.execution.outcome
    assert failures.origins(outcome.exception, 8) == ("pay",)
    assert failures.record(outcome.exception).data is None
