"""What happens to workflow code when its run is suspended."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest

from durable.errors import RunSuspended
from durable.values import Break
from tests.properties.replays import play
from tests.properties.virtual_engine import Ctx, Workflow, open_run


def plus_one(x: int) -> int:
    return x + 1


def suspended(workflow: Workflow) -> list[str]:
    """What is reported when a run is suspended as soon as it waits."""
    opened = open_run(workflow)
    opened.execution.advance()
    assert not opened.execution.finished
    texts = opened.execution.unwind()
    gc.collect()
    return texts


def test_plain_code_in_finally_runs_and_operations_in_it_record_nothing() -> None:
    seen: list[str] = []

    async def workflow(ctx: Ctx) -> Any:
        try:
            try:
                await ctx.sleep(10)
            finally:
                seen.append("before")
                await ctx.step(plus_one, 1)
                seen.append("after")
        finally:
            seen.append("outer")
        return 1

    result, engine = play(workflow, suspend=1.0)
    assert result == "returned 1"
    assert [entry.location for entry in engine.store.valid()] == ["sleep", "plus_one"]
    assert seen.count("after") == 1
    assert seen.count("before") > 1
    assert seen.count("outer") == seen.count("before")


def test_inner_and_outer_frames_see_the_same_interrupt() -> None:
    seen: list[BaseException] = []

    async def workflow(ctx: Ctx) -> Any:
        async def inner() -> None:
            try:
                await ctx.sleep(10)
            except Exception as error:  # noqa: BLE001  user code like this is what is tested
                seen.append(error)
            finally:
                await asyncio.Event().wait()

        async def outer() -> None:
            try:
                await inner()
            except BaseException as error:
                seen.append(error)
                raise

        await outer()

    assert suspended(workflow) == []
    assert [type(error) for error in seen] == [RunSuspended]


def test_a_loop_in_a_task_is_unwound_like_any_code() -> None:
    seen: list[type[BaseException]] = []

    async def workflow(ctx: Ctx) -> Any:
        async def body(ctx: Ctx) -> Break[int]:
            try:
                await ctx.sleep(10)
            except BaseException as error:
                seen.append(type(error))
                raise
            return Break(1)

        await asyncio.gather(ctx.loop("poll", body), ctx.sleep(3))

    assert suspended(workflow) == []
    assert seen == [RunSuspended]


def test_tasks_are_unwound_newest_first_in_their_own_context() -> None:
    seen: list[str] = []

    async def workflow(ctx: Ctx) -> Any:
        async def child(name: str) -> None:
            try:
                await ctx.sleep(10)
            finally:
                task = asyncio.current_task()
                assert task is not None
                seen.append(f"{name} in {task.get_name()}")

        async with asyncio.TaskGroup() as group:
            group.create_task(child("a"), name="A")
            group.create_task(child("b"), name="B")

    assert suspended(workflow) == []
    assert seen == ["b in B", "a in A"]


def test_a_task_that_bypasses_create_task_is_unwound_too() -> None:
    seen: list[str] = []

    async def workflow(ctx: Ctx) -> Any:
        async def child() -> None:
            try:
                await ctx.sleep(10)
            except RunSuspended:
                seen.append("suspended")
                raise

        await asyncio.Task(child(), loop=asyncio.get_running_loop())

    assert suspended(workflow) == []
    assert seen == ["suspended"]


async def swallows_operations(ctx: Ctx) -> None:
    while True:
        with contextlib.suppress(BaseException):
            await ctx.sleep(1000)


async def swallows_events(ctx: Ctx) -> None:
    with contextlib.suppress(BaseException):
        await ctx.sleep(1000)
    while True:
        with contextlib.suppress(BaseException):
            await asyncio.Event().wait()


@pytest.mark.parametrize("workflow", [swallows_operations, swallows_events])
def test_code_that_swallows_everything_is_given_up_and_reported(workflow: Workflow) -> None:
    assert "swallows RunSuspended" in suspended(workflow)[0]


async def returns_early(ctx: Ctx) -> str:
    try:
        await ctx.sleep(10)
    except:  # noqa: E722
        return "early"
    return "late"


async def starts_tasks_in_clean_up(ctx: Ctx) -> None:
    try:
        await ctx.sleep(10)
    finally:
        await asyncio.gather(asyncio.sleep(1), asyncio.sleep(2))


async def group_with_waiting_clean_up(ctx: Ctx) -> None:
    async def child() -> None:
        try:
            await ctx.sleep(10)
        finally:
            await asyncio.sleep(5)

    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(child())
        try:
            await ctx.sleep(20)
        finally:
            await asyncio.sleep(1)


async def generators_with_operations(ctx: Ctx) -> None:
    @contextlib.asynccontextmanager
    async def resource() -> AsyncIterator[None]:
        try:
            yield
        finally:
            await ctx.step(plus_one, 1)

    async def numbers() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            await asyncio.sleep(1)

    async with resource():
        async for _ in numbers():
            await ctx.sleep(10)


@pytest.mark.parametrize(
    "workflow",
    [returns_early, starts_tasks_in_clean_up, group_with_waiting_clean_up, generators_with_operations],
    ids=lambda workflow: workflow.__name__,
)
def test_clean_up_code_of_every_kind_is_left_quietly(workflow: Workflow, capsys: pytest.CaptureFixture[str]) -> None:
    assert suspended(workflow) == []
    assert capsys.readouterr().err == ""


def test_what_clean_up_raises_is_reported() -> None:
    async def workflow(ctx: Ctx) -> Any:
        try:
            await ctx.sleep(10)
        finally:
            raise KeyError("missing")

    assert "raised KeyError" in suspended(workflow)[0]
    assert "missing" not in suspended(workflow)[0]
