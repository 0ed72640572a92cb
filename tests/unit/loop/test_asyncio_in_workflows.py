"""Ordinary asyncio works in workflows, and every replay goes the way of the first execution."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any

import pytest

from durable.errors import JoinError, RaceError, StepFailed
from tests.properties.replays import check_replays, play, replayed
from tests.properties.virtual_engine import Ctx, message


def plus_one(x: int) -> int:
    return x + 1


def fail(x: int) -> int:
    raise ValueError(f"no {x}")


def test_nested_gathers_have_one_result() -> None:
    async def workflow(ctx: Ctx) -> Any:
        async def two(x: int) -> int:
            return await ctx.step(plus_one, x) + await ctx.step(plus_one, x)

        async def nested(x: int) -> Any:
            return await asyncio.gather(two(x), two(x + 1), ctx.step(plus_one, x))

        return await asyncio.gather(ctx.step(plus_one, 1), two(2), nested(3), asyncio.gather(nested(5)))

    assert len(check_replays(workflow)) == 1


def test_a_task_group_cancels_in_the_same_order_on_every_replay() -> None:
    async def workflow(ctx: Ctx) -> Any:
        async def branch(x: int) -> None:
            try:
                if x == 2:
                    await ctx.step(fail, x)
                await ctx.sleep(5)
            finally:
                await ctx.step(plus_one, x)  # plus_one, plus_one#2 ... are numbered in the order of cancellation

        count = 0
        try:
            async with asyncio.TaskGroup() as group:
                for x in range(6):
                    group.create_task(branch(x))
        except* StepFailed as failed:
            count = len(failed.exceptions)
        return count

    check_replays(workflow)


def test_timeouts_are_durable() -> None:
    async def workflow(ctx: Ctx) -> Any:
        seen: list[Any] = []
        try:
            async with asyncio.timeout(5):
                seen.append(await ctx.next("go"))
        except TimeoutError:
            seen.append("late")
        try:
            seen.append(await asyncio.wait_for(ctx.sleep(9), 3))
        except TimeoutError:
            seen.append("wait_for")
        try:
            async with asyncio.timeout(0):
                await ctx.step(plus_one, 7)
        except TimeoutError:
            seen.append("zero")
        async with asyncio.timeout(4) as timeout:
            timeout.reschedule(asyncio.get_running_loop().time() + 8)
            await ctx.sleep(6)
        return seen

    assert check_replays(workflow) == {"returned ['late', 'wait_for', 'zero']"}
    early = check_replays(workflow, mail=[message("m1", "go", "hello", after=2.0)])
    assert early == {"returned ['hello', 'wait_for', 'zero']"}


def test_wait_sees_completions_in_the_order_of_record() -> None:
    async def workflow(ctx: Ctx) -> Any:
        async def branch(x: int) -> int:
            return await ctx.step(plus_one, x)

        pending = {asyncio.create_task(branch(x)) for x in range(5)}
        seen: list[int] = []
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            seen += [task.result() for task in done]
            if len(seen) == 3:
                for task in pending:
                    task.cancel()
        return None

    check_replays(workflow)


def test_locks_queues_events_and_conditions_work() -> None:
    async def workflow(ctx: Ctx) -> Any:
        seen: list[Any] = []
        lock, semaphore, event, queue = asyncio.Lock(), asyncio.Semaphore(2), asyncio.Event(), asyncio.Queue[int](2)

        async def producer(x: int) -> None:
            async with semaphore:
                async with lock:
                    seen.append(await ctx.step(plus_one, x))
                await ctx.step(plus_one, 10)
            await queue.put(x)

        async def consumer() -> None:
            for _ in range(4):
                item = await queue.get()
                seen.append((item, await ctx.step(plus_one, 0)))
            event.set()

        async def waiter() -> None:
            await event.wait()
            await ctx.step(plus_one, 3)

        async with asyncio.TaskGroup() as group:
            for x in range(4):
                group.create_task(producer(x))
            group.create_task(consumer())
            group.create_task(waiter())
            group.create_task(waiter())
        return None

    check_replays(workflow)


def test_a_shielded_task_goes_on_after_the_timeout() -> None:
    async def workflow(ctx: Ctx) -> Any:
        async def inner() -> int:
            await ctx.sleep(6)
            return await ctx.step(plus_one, 1)

        task = asyncio.create_task(inner())
        try:
            await asyncio.wait_for(asyncio.shield(task), 3)
        except TimeoutError:
            return "late", await task

    assert check_replays(workflow) == {"returned ('late', 2)"}


def test_generators_and_context_managers_may_wait() -> None:
    async def workflow(ctx: Ctx) -> Any:
        seen: list[Any] = []

        async def numbers() -> AsyncGenerator[int, None]:
            try:
                for x in range(10):
                    yield await ctx.step(plus_one, x)
            finally:
                seen.append("closed")

        async for x in numbers():
            if x == 3:
                break
        async with contextlib.aclosing(numbers()) as generator:
            async for x in generator:
                if x == 2:
                    break

        @contextlib.asynccontextmanager
        async def resource() -> AsyncIterator[int]:
            seen.append("opened")
            try:
                yield 5
            finally:
                seen.append(await ctx.step(plus_one, 50))

        @contextlib.contextmanager
        def plain() -> Iterator[None]:
            try:
                yield
            finally:
                seen.append("plain")

        async with resource() as value, contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(resource())
            with plain():
                await ctx.sleep(4)
            seen.append(await ctx.step(plus_one, value))
        return seen

    assert len(check_replays(workflow)) == 1


def test_cancelled_operations_are_not_performed_again() -> None:
    async def workflow(ctx: Ctx) -> Any:
        step, sleep = asyncio.create_task(ctx.step(plus_one, 1)), asyncio.create_task(ctx.sleep(100))
        await ctx.step(plus_one, 2)
        step.cancel()
        sleep.cancel()
        found = await asyncio.gather(step, sleep, return_exceptions=True)
        return type(found[1]).__name__, await ctx.step(plus_one, 3)

    check_replays(workflow)


def test_a_task_may_cancel_itself() -> None:
    async def workflow(ctx: Ctx) -> Any:
        async def itself() -> Any:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            try:
                await ctx.step(plus_one, 1)
            except asyncio.CancelledError:
                return "cancelled", await ctx.step(plus_one, 2)

        return await asyncio.create_task(itself())

    assert len(check_replays(workflow)) == 1


def test_failures_of_branches_are_errors_of_their_blocks() -> None:
    async def workflow(ctx: Ctx) -> Any:
        async def good(ctx: Ctx) -> int:
            return await ctx.step(plus_one, 1)

        async def bad(ctx: Ctx) -> int:
            return await ctx.step(fail, 1)

        seen: list[Any] = []
        try:
            await asyncio.gather(ctx.step(fail, 1), ctx.step(plus_one, 2))
        except ValueError as error:
            seen.append(type(error).__name__)
        try:
            await ctx.join("join", {"bad": bad, "good": good})
        except JoinError as error:
            seen.append(list(error.failures))
        try:
            await ctx.race("race", {"bad": bad, "worse": bad})
        except RaceError as error:
            seen.append(list(error.failures))
        seen.append(await ctx.race("won", {"bad": bad, "good": good}))
        return seen

    assert len(check_replays(workflow)) == 1


def test_context_variables_reach_branches_and_steps() -> None:
    variable = contextvars.ContextVar("variable", default=0)

    def read() -> int:
        return variable.get()

    async def workflow(ctx: Ctx) -> Any:
        variable.set(1)

        async def branch(ctx: Ctx) -> int:
            variable.set(variable.get() + 10)
            await ctx.sleep(1)
            return await ctx.step(read)

        return await ctx.step(read), await ctx.join("join", {"a": branch, "b": branch}), await ctx.step(read)

    assert check_replays(workflow) == {"returned (1, {'a': 11, 'b': 11}, 1)"}
    assert variable.get() == 0


def test_callbacks_run_in_order_and_timers_may_be_cancelled() -> None:
    async def workflow(ctx: Ctx) -> Any:
        seen: list[Any] = []
        loop = asyncio.get_running_loop()
        loop.call_soon(seen.append, 1)
        await asyncio.sleep(0)
        seen.append(2)
        loop.call_later(5, seen.append, "later")
        loop.call_later(5, seen.append, "never").cancel()
        await asyncio.sleep(7)
        seen.append(await ctx.step(plus_one, 2))
        return seen

    assert check_replays(workflow) == {"returned [1, 2, 'later', 3]"}


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")
def test_eager_tasks_start_like_others() -> None:
    async def workflow(ctx: Ctx) -> Any:
        seen: list[Any] = []

        async def branch(x: int) -> None:
            seen.append(x)
            seen.append(await ctx.step(plus_one, await ctx.step(plus_one, x)))

        loop = asyncio.get_running_loop()
        eager: Any = asyncio  # the type checker reads this as Python 3.11
        tasks = [eager.eager_task_factory(loop, branch(x)) for x in range(3)]
        tasks += [eager.Task(branch(x), loop=loop, eager_start=True) for x in range(3)]
        seen.append("parent")
        await ctx.step(plus_one, 9)
        await asyncio.gather(*tasks)

    check_replays(workflow)


@pytest.mark.parametrize("size", [3, 5, 30, 200])
def test_sets_of_tasks_iterate_in_the_order_of_creation(size: int) -> None:
    async def workflow(ctx: Ctx) -> Any:
        async def nothing() -> None:
            await asyncio.sleep(0)

        for _ in range(before):
            await asyncio.create_task(nothing())
        tasks = [asyncio.create_task(nothing()) for _ in range(size)]
        done, _ = await asyncio.wait(tasks)
        backwards = tasks[::-1]
        return list(done) == tasks and list(set(backwards)) == tasks

    for before in range(20):  # noqa: B007  the workflow reads it
        assert replayed(workflow, []).result == "returned True"


def test_a_suspension_is_not_raised_into_code_that_catches_everything() -> None:
    async def workflow(ctx: Ctx) -> Any:
        seen: list[Any] = []
        for _ in range(2):
            try:
                seen.append(await ctx.next("go"))
            except:  # noqa: E722
                seen.append("swallowed")
        return seen

    mail = [message("m1", "go", "a", after=1.0), message("m2", "go", "b", after=20.0)]
    assert check_replays(workflow, mail=mail) == {"returned ['a', 'b']"}


def test_a_workflow_runs_inside_another_event_loop() -> None:
    async def workflow(ctx: Ctx) -> Any:
        async def numbers() -> AsyncIterator[int]:
            yield await ctx.step(plus_one, 1)
            yield 2

        async for _ in numbers():
            break
        async with asyncio.timeout(50):
            return await asyncio.gather(ctx.step(plus_one, 1), ctx.step(plus_one, 2))

    async def outer() -> None:
        task = asyncio.current_task()
        assert len(check_replays(workflow, seeds=range(3))) == 1
        assert asyncio.current_task() is task
        async with asyncio.timeout(10):
            await asyncio.sleep(0)

    asyncio.run(outer())
    asyncio.run(outer(), debug=True)


def test_runs_go_on_side_by_side_in_threads() -> None:
    async def workflow(ctx: Ctx) -> Any:
        return await asyncio.gather(*(ctx.step(plus_one, x) for x in range(20)), ctx.sleep(3))

    async def outer() -> list[Any]:
        return await asyncio.gather(*(asyncio.to_thread(play, workflow, seed) for seed in range(4)))

    results = [result for result, _ in asyncio.run(outer())]
    assert len(set(results)) == 1
