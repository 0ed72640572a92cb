"""A run starts others, waits for them, and learns of every way in which they can end."""

import asyncio
from typing import Any

import pytest

from durable import App, ChildCancelled, ChildFailed, ChildTimedOut, Context, Failed, NonRetryableError, Ok, Signal
from tests.scenarios.conftest import World

GO = Signal("go", str)

app = App("children")


class CardDeclined(Exception):
    def __init__(self, *, code: str) -> None:
        super().__init__(code)
        self.code = code


def charge(amount: int) -> int:
    if amount < 0:
        raise CardDeclined(code="negative")
    return amount * 2


@app.workflow
async def double(ctx: Context, amount: int) -> int:
    return await ctx.step(charge, amount)


@app.workflow
async def waiting(ctx: Context, name: str) -> str:
    return f"{name}: {await ctx.wait_for_signal(GO)}"


@app.workflow(timeout="1h")
async def impatient(ctx: Context) -> str:
    return await ctx.wait_for_signal(GO)


@app.workflow
async def parent(ctx: Context, amount: int) -> int:
    return await ctx.child(double, amount) + 1


@app.workflow
async def family(ctx: Context, amounts: list[int]) -> list[int]:
    return list(await asyncio.gather(*(ctx.child(double, amount) for amount in amounts)))


@app.workflow
async def handles(ctx: Context, amount: int) -> list[int]:
    handle = await ctx.start_child(double, amount)
    first = await handle.result()
    return [first, await handle.result()]


def test_a_child_gives_its_output(world: World) -> None:
    with world(app) as env:
        handle = env.start(parent, 4, id="p-1")
        assert handle.result() == 9
        child = env.get("p-1.double")
        assert (child.status, child.parent, child.outbox) == ("completed", "p-1", None)


def test_children_run_side_by_side(world: World) -> None:
    with world(app) as env:
        assert env.start(family, [1, 2, 3]).result() == [2, 4, 6]


def test_a_started_child_can_be_asked_twice(world: World) -> None:
    with world(app) as env:
        assert env.start(handles, 3).result() == [6, 6]
