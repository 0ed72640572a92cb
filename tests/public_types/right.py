# pyright: strict
"""Every line infers exactly the stated type, under pyright strict and mypy strict. Checked, never run."""

import asyncio
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, assert_type

from durable import (
    App,
    Branch,
    Call,
    Client,
    Context,
    Failed,
    Message,
    Ok,
    RunHandle,
    Step,
    UpdateRequest,
    Winner,
    cron,
    step_context,
)
from durable.testing import TestEnvironment
from tests.public_types.shop import (
    APPROVE,
    MIXED,
    PROGRESS,
    REJECT,
    RENAME,
    SETTLED,
    Approve,
    Cart,
    Label,
    Order,
    Poll,
    Receipt,
    Reject,
    Services,
    app,
    bank,
    by_item,
    charge,
    charge_later,
    counting,
    dhl,
    forever,
    fulfil,
    maybe,
    maybe_later,
    nightly,
    no_arguments,
    polling,
    polling_forever,
    print_label,
    print_later,
    quote,
    refund,
    refund_later,
    serving,
    sku,
    stock,
    was_charged,
)


async def steps(ctx: Context, order: Order) -> None:
    assert_type(await ctx.step(charge, order), str)
    assert_type(await ctx.step(charge_later, order, amount=2), bytes)
    assert_type(await ctx.step("name", charge, order, 2), str)
    assert_type(await ctx.step("name", charge_later, order), bytes)
    assert_type(await ctx.step(Step("name", retries=9), charge, order), str)
    assert_type(await ctx.step(Step(retries=9), charge_later, order), bytes)
    assert_type(await ctx.step(bank.pay, 1), bytes)
    assert_type(await ctx.step(bank.pay_later, 1), str)
    assert_type(await ctx.step("name", bank.pay_later, cents=1), str)
    assert_type(await ctx.step("name", partial(charge, order)), str)
    assert_type(await ctx.step("name", lambda: 3), int)
    assert_type(await ctx.step(Step("name").undo(refund), charge, order), str)
    assert_type(await ctx.step(Step().undo(refund_later), charge_later, order, amount=1), bytes)
    assert_type(await ctx.step(Step(at_most_once=True).verify(was_charged), charge, order), str)
    both = Step(at_most_once=True).undo(refund).verify(was_charged)
    assert_type(await ctx.step(both, charge, order, 2), str)


async def outcomes(ctx: Context, order: Order) -> None:
    outcome = await ctx.try_step(charge, order)
    assert_type(outcome, Ok[str] | Failed)
    match outcome:
        case Ok(value):
            assert_type(value, str)
        case Failed(kind="timeout"):
            pass
        case Failed():
            pass
    assert_type(await ctx.try_step("name", charge_later, order), Ok[bytes] | Failed)
    assert_type(await ctx.try_step(Step("name").undo(refund), charge, order), Ok[str] | Failed)
    assert_type(outcome.unwrap(), str)
    assert_type(await ctx.try_block("block", no_arguments), Ok[bytes] | Failed)
    assert_type(await ctx.retrying("block", no_arguments, retries=2), bytes)


async def remote_steps(ctx: Context, order: Order) -> None:
    assert_type(await ctx.call(print_label, order, copies=3), Label)
    assert_type(await ctx.call(Call(queue="q", priority=3), print_label, order), Label)
    assert_type(await ctx.call("name", print_later, order), Label)
    assert_type(await ctx.call(print_label.using(Call(priority=1)), order), Label)


async def loops(ctx: Context) -> None:
    assert_type(await ctx.loop("loop", counting), int)
    assert_type(await ctx.loop("loop", polling, state=Poll(0)), str)
    assert_type(await ctx.wait_until("wait", maybe_later, every="5m"), Label)
    assert_type(await ctx.wait_until("wait", maybe, every="5m"), Label)


async def a_loop_without_end(ctx: Context) -> int:
    return await ctx.loop("loop", forever)


async def a_loop_with_state_without_end(ctx: Context) -> int:
    return await ctx.loop("loop", polling_forever, state=Poll(0))


async def branches(ctx: Context, order: Order) -> None:
    a, b = await ctx.join("join", Branch("a", quote, order, "dhl"), Branch("b", stock, "sku"))
    assert_type(a, int)
    assert_type(b, list[str])
    assert_type(await ctx.join("join", *[Branch(c, quote, order, c) for c in "abc"]), tuple[int, ...])
    assert_type(await ctx.join("join", {c: partial(quote, order=order, carrier=c) for c in "abc"}), dict[str, int])
    assert_type(await ctx.join("join", {"a": no_arguments, "b": lambda ctx: no_arguments(ctx)}), dict[str, bytes])  # noqa: PLW0108 - a lambda is what is checked
    assert_type(await ctx.join("join", dhl, sku, dhl), tuple[int, list[str], int])
    winner = await ctx.race("race", dhl, sku)
    assert_type(winner, Winner[int] | Winner[list[str]])
    if dhl.won(winner):
        assert_type(winner.value, int)
    else:
        assert_type(winner.value, list[str])
    match winner.value:
        case int() as number:
            assert_type(number, int)
        case other:
            assert_type(other, list[str])
    assert_type(await ctx.race("race", {"a": no_arguments, "b": no_arguments}), Winner[bytes])
    assert_type(await ctx.map("map", ["a"], by_item), list[Label])
    result = await ctx.try_map("map", ["a"], by_item, tolerate=3)
    assert_type(result.values, list[Label])
    assert_type(result.failures, list[tuple[int, Failed]])


async def messages(ctx: Context, order: Order) -> None:
    assert_type(await ctx.mailbox.next(APPROVE), Message[Approve])
    assert_type(await ctx.mailbox.next(APPROVE, timeout="1h", default=None), Message[Approve] | None)
    assert_type(await ctx.mailbox.next("approve", Approve), Message[Approve])
    assert_type(await ctx.mailbox.next("numbers", list[int]), Message[list[int]])
    message = await ctx.mailbox.next_any(APPROVE, REJECT)
    assert_type(message, Message[Approve] | Message[Reject])
    match message.body:
        case Approve():
            pass
        case Reject():
            pass
    assert_type(await ctx.mailbox.next_any(), Message[Any])
    assert_type(await ctx.mailbox.next_batch(APPROVE, count=10), list[Message[Approve]])
    assert_type(await ctx.mailbox.send("run", APPROVE, Approve(by="me"), delay="1m"), None)
    assert_type(await ctx.wait_for_signal(APPROVE), Approve)
    assert_type(await ctx.wait_for_signal(MIXED), Approve | Reject | None)
    assert_type(await ctx.wait_for_signal("x", int, timeout=3, default=None), int | None)
    assert_type(await ctx.wait_for_signal("x", Approve | Reject), Approve | Reject)
    assert_type(await ctx.wait_for_signal("x", Approve | None, timeout=3, default=0), Approve | None | int)
    assert_type(await ctx.wait_for_event(SETTLED, match={"id": order.id}), Order)
    assert_type(await ctx.wait_for_event(SETTLED, timeout="1h", default=None), Order | None)
    assert_type(await ctx.wait_for_event("weather", int, timeout="1h"), int)
    assert_type(await ctx.webhook("hook").wait(dict[str, int]), dict[str, int])
    assert_type(await ctx.callback("ask", print, Approve | None, timeout="1h", heartbeat="1m"), Approve | None)
    request = await ctx.updates.next(RENAME)
    assert_type(request, UpdateRequest[str, int])
    assert_type(request.arg, str)
    request.respond(3)


async def other_runs(ctx: Context, order: Order) -> None:
    assert_type(await ctx.child(fulfil, order), Receipt)
    assert_type(await ctx.child(nightly), int)
    child = await ctx.start_child(fulfil, order, id="c")
    assert_type(await child.result(), Receipt)
    cart = ctx.entity(Cart, "c1")
    assert_type(await cart.call(Cart.add, "sku", n=2), int)
    assert_type(await cart.call(Cart.check_out, "coupon"), Receipt)
    assert_type(await cart.call(Cart.ping), bool)
    assert_type(await cart.call(Cart.key), str)
    assert_type(await cart.call(Cart.clear), None)
    assert_type(await cart.signal(Cart.check_out, "coupon"), None)
    assert_type(await cart.delayed("10m", id="later").signal(Cart.clear), None)
    assert_type(await cart.state(), Cart)
    assert_type(ctx.entity_key, str)


async def plain_calls(ctx: Context) -> None:
    ctx.set_state(PROGRESS, 0.5)
    assert_type(ctx.get_version("v", 2), int)
    assert_type(ctx.patched("v"), bool)
    assert_type(ctx.random.random(), float)
    assert_type(ctx.run.id, str)


async def asyncio_itself(ctx: Context, order: Order) -> None:
    task = asyncio.create_task(ctx.step(charge, order))
    assert_type(await task, str)
    first, second = await asyncio.gather(ctx.step(charge, order), ctx.step(charge_later, order))
    assert_type(first, str)
    assert_type(second, bytes)


def callers(client: Client, order: Order) -> None:
    handle = client.start(fulfil, order, id="o1")
    assert_type(handle, RunHandle[Receipt])
    assert_type(client.result(handle), Receipt)
    assert_type(handle.result(timeout=3), Receipt)
    assert_type(client.start(nightly).result(), int)
    assert_type(client.start(fulfil, order, headers={"tenant": "acme"}), RunHandle[Receipt])
    assert_type(client.handle(fulfil, "o1").result(), Receipt)
    assert_type(client.start("fulfil", {"id": "o1", "total": 3}), RunHandle[Any])
    assert_type(client.send("o1", APPROVE, Approve(by="me")), str)
    handle.send("approve", {"by": "me"})
    assert_type(client.update("o1", RENAME, "x"), int)
    assert_type(client.publish_event(SETTLED, order, id="e", buffer="1h"), str)
    client.publish_event("weather", 3)
    assert_type(client.get_state("o1", PROGRESS), float | None)
    assert_type(client.entity(Cart, "c").call(Cart.add, "sku"), int)
    assert_type(client.entity(Cart, "c").call(Cart.check_out, "coupon"), Receipt)
    assert_type(client.entity(Cart, "c", timeout="5s", id="once").call(Cart.key), str)
    client.entity(Cart, "c").delayed("1 day").signal(Cart.add, "sku")
    assert_type(client.entity(Cart, "c").state(), Cart)
    assert_type(client.start_with_message(fulfil, order, APPROVE, Approve(by="me"), id="o1"), RunHandle[Receipt])
    assert_type(client.start_with_message(nightly, None, "go", 3, id="n", message_id="m").result(), int)
    assert_type(client.start_with_message("fulfil", {}, "go", 3, id="n"), RunHandle[Any])


def registrations(order: Order) -> None:
    assert_type(app, App[None])
    assert_type(serving.services, Services)
    app.schedule("n", cron("0 2 * * ? *"), nightly)
    app.schedule("n", cron("0 2 * * ? *"), fulfil, order)
    app.on_event(SETTLED, fulfil)


@fulfil.validator(RENAME)
def refuses_no_name(name: str) -> None: ...


def tests_of_workflows(order: Order) -> None:
    with TestEnvironment(app) as env:
        env.mock(charge).returns("ok")
        env.mock(charge_later).returns(b"ok")
        env.mock(print_label).returns(Label(url=""))
        assert_type(env.start(fulfil, order).result(), Receipt)
        env.advance(days=3)
        env.run_crash_matrix(fulfil, order)


@app.propagate
class Tracing:
    """A carrier as a class with static methods."""

    @staticmethod
    def capture() -> dict[str, str]:
        return {}

    @staticmethod
    @contextmanager
    def restore(headers: Mapping[str, str]) -> Generator[None]:
        yield


class Tenants:
    """A carrier as an object."""

    def capture(self) -> Mapping[str, str]:
        return {}

    def restore(self, headers: Mapping[str, str], /) -> AbstractContextManager[str]:
        return nullcontext("acme")


def carriers() -> None:
    assert_type(app.propagate(Tracing), type[Tracing])
    assert_type(app.propagate(Tenants()), Tenants)


async def headers(ctx: Context) -> None:
    assert_type(ctx.run.headers, Mapping[str, str])
    assert_type(step_context().headers, Mapping[str, str])
