"""What cannot be read, and what is told from elsewhere in another shape than the code expects, blocks or is passed over: nothing hangs."""

from contextlib import suppress
from typing import Any

import pytest
from pydantic import BaseModel

from durable import App, Batch, Context, Event, RunBlocked, RunFailed
from durable.context.collecting import collector_id
from durable.testing import TestEnvironment


def app_with(output: Any) -> App[Any]:
    app = App("payloads")

    async def seven(ctx: Context) -> Any:
        return 7

    seven.__annotations__["return"] = output
    child = app.workflow(name="child")(seven)

    @app.workflow(name="parent")
    async def parent(ctx: Context) -> str:
        return str(await ctx.child(child, id="c"))

    return app


def test_a_child_whose_output_the_code_cannot_read_blocks_its_parent_until_it_can() -> None:
    with TestEnvironment(app_with(int)) as env:
        env.start("child", None, id="c").result()
        env.deploy(app_with(list[str]))
        env.start("parent", None, id="p")
        with pytest.raises(RunBlocked, match=r"list\[str\]"):
            env.result("p")
        env.deploy(app_with(int))
        assert env.result("p") == "7"


def shop_with(output: Any) -> App[Any]:
    app = App("shop")

    class Till(BaseModel):
        taken: int = 0

        def take(self, n: int) -> Any:
            self.taken += n
            return self.taken

    Till.take.__annotations__["return"] = output
    app.entity(Till)

    @app.workflow(name="buys")
    async def buys(ctx: Context) -> str:
        return str(await ctx.entity(Till, "t").call(Till.take, 1))

    return app


def test_an_answer_of_an_entity_that_the_code_cannot_read_blocks_the_run() -> None:
    with TestEnvironment(shop_with(int)) as env:
        env.start("buys", id="p")
        env.world.deliver()
        env.world.deliver()
        assert env.get("p").status == "suspended"
        env.deploy(shop_with(list[str]))
        with pytest.raises(RunBlocked):
            env.result("p")
        env.deploy(shop_with(int))
        assert env.result("p") == "1"


class Sold(BaseModel):
    n: int
    customer: str | None = None


SOLD = Event("sold", Sold)


@pytest.mark.parametrize("payload", [{"n": 1}, {"n": 1, "customer": None}])
def test_an_event_without_the_key_has_the_same_collector_in_every_process(payload: dict[str, Any]) -> None:
    app = App("collects")

    @app.workflow(name="sums")
    async def sums(ctx: Context, sold: list[Sold]) -> int:
        return sum(one.n for one in sold)

    app.on_event(SOLD, sums, batch=Batch(size=3, window="1h"), key="customer")
    (trigger,) = app.triggers("sold")
    assert collector_id(trigger, payload) == "on.sold.sums.null"


large = App("large")
QUOTES = '"' * 120_000
"""As JSON twice as long, and as JSON within JSON four times."""


@large.entity
class Shelf(BaseModel):
    def put(self, text: str) -> int:
        return len(text)


@large.workflow
async def length(ctx: Context, text: str) -> int:
    return len(text)


@large.remote_step
def remote_length(text: str) -> int:
    return len(text)


@large.workflow
async def asks_entity(ctx: Context) -> int:
    return await ctx.entity(Shelf, "s").call(Shelf.put, QUOTES)


@large.workflow
async def asks_child(ctx: Context) -> int:
    return await ctx.child(length, QUOTES)


@large.workflow
async def asks_worker(ctx: Context) -> int:
    return await ctx.call(remote_length, QUOTES)


@large.workflow
async def sends(ctx: Context) -> int:
    await ctx.mailbox.send(ctx.run.id, "text", QUOTES)
    message = await ctx.mailbox.next("text", str)
    return len(message.body)


@pytest.mark.parametrize("workflow", [asks_entity, asks_child, asks_worker, sends], ids=lambda it: it.name)
def test_what_is_large_is_passed_on_or_refused_where_it_is_given(workflow: Any) -> None:
    with TestEnvironment(large) as env:
        handle = env.start(workflow)
        with suppress(RunFailed):
            assert handle.result() == len(QUOTES)
        record = env.get(handle.id)
        assert record.status == "completed" or "LimitExceeded" in str(record.error)
