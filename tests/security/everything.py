"""An app that does a little of everything that needs a service of AWS."""

import asyncio
from typing import Any

from pydantic import BaseModel

from durable import (
    App,
    Blob,
    Break,
    Context,
    Continue,
    Event,
    NonRetryableError,
    Rate,
    Signal,
    Singleton,
    StateKey,
    Step,
    Update,
    step_context,
)

GO = Signal("go", str)
RENAME = Update("rename", str, str)
PAID = Event("paid", dict[str, str])
LINKS = StateKey("links", dict[str, str])
TABLE = "stock"

app = App("everything")
app.queue("labels", concurrency=1)
app.queue("scales", concurrency=1, rate=Rate(1, per="1h"))
broken: list[bool] = [True]


class Order(BaseModel):
    id: str
    note: str = ""


@app.entity
class Cart(BaseModel):
    lines: list[str] = []

    def add(self, line: str) -> int:
        self.lines.append(line)
        return len(self.lines)


def work(text: str = "") -> str:
    return text


def unwork(result: str, text: str = "") -> None: ...


def rows() -> list[str]:
    return ["row"] * 9


def count(found: Blob[list[str]]) -> int:
    return len(step_context().load(found, list[str]))


def links_of(token: str) -> str:
    return token


def fails_at_first(text: str) -> str:
    if broken[0]:
        raise NonRetryableError(f"no: {text}")
    return text


@app.remote_step(queue="labels")
def print_label(order: Order) -> str:
    step_context().heartbeat("printing")
    return order.id


@app.remote_step(queue="scales")
def measure(order: Order) -> str:
    return order.id


@app.remote_step
def weigh(order: Order) -> str:
    return order.note


@app.workflow
async def child(ctx: Context, text: str) -> str:
    return await ctx.step(work, text)


@app.workflow(singleton=Singleton(key="id"))
async def order(ctx: Context, order: Order) -> str:
    ctx.set_attributes(amount=1)
    ctx.add_tags("red")
    ctx.stream("talk").append(order.note)
    await ctx.step(Step().undo(unwork), work, order.note)
    found = await ctx.offload("rows", rows)
    await ctx.step(count, found)
    await asyncio.gather(ctx.call("first", print_label, order), ctx.call("second", print_label, order))
    await ctx.child(child, order.note)
    cart = ctx.entity(Cart, "c-1")
    await cart.call(Cart.add, order.note)
    request = await ctx.updates.next(RENAME)
    request.respond(request.arg)
    await ctx.wait_for_event(PAID, match={"id": order.id})
    return order.note + await ctx.wait_for_signal(GO)


@app.workflow
async def large(ctx: Context, text: str) -> str:
    return await ctx.call(weigh, Order(id="large", note=await ctx.step(work, text)))


@app.workflow
async def labels(ctx: Context) -> None:
    await asyncio.gather(*(ctx.call(f"label-{n}", print_label, Order(id="x")) for n in range(2)))


@app.workflow
async def scales(ctx: Context) -> None:
    await asyncio.gather(*(ctx.call(f"scale-{n}", measure, Order(id="x")) for n in range(2)))


@app.workflow
async def asks(ctx: Context) -> str:
    hook = ctx.webhook("hook")
    ctx.set_state(LINKS, {"hook": hook.url})

    def publish(token: str) -> None:
        step_context().stream("tokens").append(token)

    answered = await ctx.callback("answer", publish, str, timeout="1h", heartbeat="30m")
    return answered + str(await hook.wait(Any))


@app.workflow
async def sleepy(ctx: Context) -> str:
    await ctx.sleep("3 days")
    return "awake"


@app.workflow
async def reads(ctx: Context) -> int:
    async def body(ctx: Context, n: int) -> Continue[int] | Break[int]:
        await ctx.step(Step().undo(unwork), work, "x")
        await ctx.wait_for_signal(GO)
        return Continue(n + 1) if n < 5 else Break(n)

    return await ctx.loop("reading", body, state=0, history=2)


@app.workflow
async def fails(ctx: Context) -> str:
    said = await ctx.step(work, "before") + await ctx.wait_for_signal(GO)
    return said + await ctx.step(fails_at_first, said)


@app.workflow
async def goes_on(ctx: Context, n: int) -> int:
    await ctx.wait_for_signal(GO)
    return n if n == 2 else await ctx.continue_as_new(goes_on, n + 1)


@app.workflow
async def books(ctx: Context) -> None:
    item = {"pk": "1", "count": 1}
    await ctx.transact("book", [{"Put": {"TableName": TABLE, "Item": item}}])
