"""Entities: state behind a key, changed by one operation at a time, in order, and each operation once."""

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from durable import App, Context, EntityFailed, Failed, InvalidInput, InvalidName, RunEnded, Signal
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World

app = App("entities")
GO = Signal("go", str)


class OutOfStock(Exception):
    def __init__(self, *, sku: str) -> None:
        super().__init__(sku)
        self.sku = sku


def reserve(sku: str, n: int) -> str:
    return f"{n} x {sku}"


def decline(sku: str) -> str:
    raise OutOfStock(sku=sku)


@app.entity
class Cart(BaseModel):
    items: dict[str, int] = {}
    notes: list[str] = []

    def add(self, sku: str, n: int = 1) -> int:
        self.items[sku] = self.items.get(sku, 0) + n
        if n > 100:
            raise OutOfStock(sku=sku)
        return self.items[sku]

    def spoil(self) -> None:
        broken: Any = "broken"
        self.items = broken

    def clear(self) -> None:
        self.items = {}
        self.notes.append("cleared")

    def note(self, *words: str, **more: str) -> list[str]:
        self.notes += [*words, *more.values()]
        return self.notes

    async def reserve(self, ctx: Context, sku: str) -> str:
        reserved = await ctx.step(reserve, sku, self.items[sku])
        self.notes.append(f"{ctx.entity_key}: {reserved}")
        return reserved

    async def decline(self, ctx: Context, sku: str) -> str:
        self.notes.append("declining")
        return await ctx.step(decline, sku)

    def where(self, ctx: Context) -> str:
        return ctx.entity_key

    async def recurse(self, ctx: Context) -> int:
        return await ctx.entity(Cart, ctx.entity_key).call(Cart.add, "x")

    async def pass_on(self, ctx: Context, key: str, sku: str) -> int:
        return await ctx.entity(Cart, key).call(Cart.add, sku, 101)

    async def sleeps(self, ctx: Context) -> None:
        await ctx.sleep("1 day")

    def get(self) -> dict[str, int]:
        return self.items


@app.workflow
async def shopping(ctx: Context, key: str) -> list[Any]:
    cart = ctx.entity(Cart, key)
    first = await cart.call(Cart.add, "cup")
    second = await cart.call(Cart.add, "cup", n=2)
    await cart.signal(Cart.note, "hello", other="there")
    reserved = await cart.call(Cart.reserve, "cup")
    state = await cart.state()
    return [first, second, reserved, state.items, state.notes]


def test_a_run_asks_an_entity(world: World) -> None:
    with world(app) as env:
        result = env.start(shopping, "c-1").result()
        assert result == [1, 3, "3 x cup", {"cup": 3}, ["hello", "there", "c-1: 3 x cup"]]
        assert env.entity(Cart, "c-1").state().items == {"cup": 3}
        assert env.entity(Cart, "c-2").state() == Cart()


def test_a_client_asks_an_entity(world: World) -> None:
    with world(app) as env:
        cart = env.entity(Cart, "c-1")
        assert cart.call(Cart.add, "cup") == 1
        assert cart.call(Cart.add, "cup", n=4) == 5
        assert cart.state() == Cart(items={"cup": 5})
        cart.signal(Cart.clear)
        assert cart.call(Cart.where) == "c-1"
        assert cart.state() == Cart(notes=["cleared"])


def test_a_failed_operation_raises_at_its_caller_and_changes_nothing(world: World) -> None:
    with world(app) as env:
        cart = env.entity(Cart, "c-1")
        cart.call(Cart.add, "cup")
        with pytest.raises(EntityFailed, match=r'Cart\.add of entity "c-1" failed: OutOfStock: cup') as failure:
            cart.call(Cart.add, "cup", 101)
        assert isinstance(failure.value, OutOfStock)
        assert failure.value.sku == "cup"
        with pytest.raises(OutOfStock):
            cart.call(Cart.decline, "tea")
        with pytest.raises(EntityFailed, match="state of entity Cart cannot be stored"):
            cart.call(Cart.spoil)
        assert cart.state() == Cart(items={"cup": 1})
        assert cart.call(Cart.add, "cup") == 2


@app.workflow
async def careless(ctx: Context, key: str) -> str:
    cart = ctx.entity(Cart, key)
    try:
        await cart.call(Cart.add, "cup", 500)
    except OutOfStock as error:
        kind = type(error).__mro__[1].__name__
        return f"{kind} {error.sku} {await cart.state()!r}"
    return "added"


def test_a_run_catches_it_by_its_class(world: World) -> None:
    with world(app) as env:
        assert env.start(careless, "c-1").result() == "EntityFailed cup Cart(items={}, notes=[])"


def test_what_another_entity_fails_with_comes_through(world: World) -> None:
    with world(app) as env:
        with pytest.raises(OutOfStock):
            env.entity(Cart, "c-1").call(Cart.pass_on, "c-2", "tea")
        with pytest.raises(EntityFailed, match="calls its own entity"):
            env.entity(Cart, "c-1").call(Cart.recurse)


@app.workflow
async def mistaken(ctx: Context) -> str:
    wrong: Any = "three"
    try:
        await ctx.entity(Cart, "c-1").call(Cart.add, "cup", wrong)
    except InvalidInput as error:
        return str(error)
    return "sent"


def test_arguments_are_checked_before_anything_is_sent(world: World) -> None:
    anything: Any = object()
    with world(app) as env:
        cart: Any = env.entity(Cart, "c-1")
        with pytest.raises(InvalidInput, match=r"argument n of Cart\.add"):
            cart.call(Cart.add, "cup", n="three")
        with pytest.raises(TypeError, match=r"Cart.add\(\): missing a required argument"):
            cart.call(Cart.add)
        with pytest.raises(TypeError, match="no operation of entity Cart"):
            cart.call(reserve, "cup")
        with pytest.raises(TypeError, match="is no entity"):
            env.entity(anything, "c-1")
        assert not env.world.services.runs.pending
        assert "argument n of Cart.add" in env.start(mistaken).result()
        assert env.ports.store.get("entity:Cart:c-1") is None


@pytest.mark.parametrize("key", ["a~2", "+plus", "ä b/c", "k" * 256, "a:b@c"])
def test_any_key_will_do(world: World, key: str) -> None:
    with world(app) as env:
        assert env.entity(Cart, key).call(Cart.where) == key
        assert env.entity(Cart, key).call(Cart.add, "cup") == 1
        assert env.entity(Cart, key + "x" if len(key) < 256 else "x").state() == Cart()


def test_a_key_that_none_can_have_is_refused(world: World) -> None:
    with world(app) as env:
        for key in ("", "k" * 257, "line\nbreak"):
            with pytest.raises(ValueError, match="entity key"):
                env.entity(Cart, key)


@app.workflow
async def blocks(ctx: Context) -> str:
    async def body(ctx: Context) -> int:
        return await ctx.entity(Cart, "c-1").call(Cart.add, "cup", 500)

    match await ctx.try_block("adding", body):
        case Failed(source="entity", name=name, error=error) if error.cause is not None:
            return f"{name}: {error.cause.type}"
        case other:
            return repr(other)


def test_a_try_block_takes_the_failure(world: World) -> None:
    with world(app) as env:
        assert env.start(blocks).result() == "Cart.add: OutOfStock"


def test_an_entity_is_not_started_by_hand(world: World) -> None:
    with world(app) as env:
        with pytest.raises(InvalidName, match="begins with the first call of it"):
            env.start("entity:Cart", "c-1")
        with pytest.raises(InvalidName, match="belongs to entities"):
            env.start(shopping, "c-1", id="entity:Cart:c-1")


# Order, duplicates, many at once


@app.workflow
async def adds(ctx: Context, n: int) -> list[int]:
    cart = ctx.entity(Cart, "shared")
    return list(await asyncio.gather(*(cart.call(Cart.add, "cup") for _ in range(n))))


def test_operations_of_many_callers_are_performed_one_at_a_time(world: World) -> None:
    with world(app) as env:
        runs = [env.start(adds, 3) for _ in range(3)]
        given = [value for run in runs for value in run.result()]
        assert sorted(given) == list(range(1, 10))


def test_calls_that_arrive_together_are_one_turn() -> None:
    env = TestEnvironment(app)
    cart = env.entity(Cart, "c-1")
    cart.call(Cart.add, "cup")
    before = env.calls.count("store.acquire")
    for _ in range(8):
        cart.signal(Cart.add, "cup")
    env.run_until_idle()
    assert env.calls.count("store.acquire") == before + 1
    assert cart.state().items == {"cup": 9}


def test_the_same_call_twice_is_performed_once(world: World) -> None:
    with world(app) as env:
        for _ in range(3):
            assert env.entity(Cart, "c-1", id="once").call(Cart.add, "cup") == 1
            env.entity(Cart, "c-1").signal(Cart.note, "between")
            env.advance("10m")
        assert env.entity(Cart, "c-1").state().items == {"cup": 1}


# Delayed signals


def test_a_delayed_signal_is_performed_when_it_is_due(world: World) -> None:
    with world(app) as env:
        cart = env.entity(Cart, "c-1")
        cart.call(Cart.add, "cup")
        cart.delayed("3 days").signal(Cart.clear)
        env.advance("2 days")
        assert cart.state().items == {"cup": 1}
        env.advance("25h")
        assert cart.state() == Cart(notes=["cleared"])


def test_one_of_the_same_id_replaces_it(world: World) -> None:
    with world(app) as env:
        cart = env.entity(Cart, "c-1")
        for n in range(4):
            cart.delayed("10m", id="offline").signal(Cart.note, f"offline {n}")
            env.advance("9m")
        assert cart.state().notes == []
        env.advance("2m")
        assert cart.state().notes == ["offline 3"]
        env.advance("1 day")
        assert cart.state().notes == ["offline 3"]


@app.workflow
async def reminds(ctx: Context) -> None:
    cart = ctx.entity(Cart, "c-1")
    await cart.delayed("20m", id="b").signal(Cart.note, "b")
    await cart.delayed("10m", id="a").signal(Cart.note, "a")
    await cart.delayed(0).signal(Cart.note, "now")


def test_a_run_delays_signals_too(world: World) -> None:
    with world(app) as env:
        env.start(reminds).result()
        env.run_until_idle()
        assert env.entity(Cart, "c-1").state().notes == ["now"]
        env.advance("1h")
        assert env.entity(Cart, "c-1").state().notes == ["now", "a", "b"]


def test_what_is_delayed_is_a_signal(world: World) -> None:
    with world(app) as env:
        with pytest.raises(TypeError, match="what is delayed is a signal"):
            env.entity(Cart, "c-1").delayed("1m").call(Cart.get)
        with pytest.raises(ValueError, match="delayed"):
            env.entity(Cart, "c-1").delayed("-1m")


# Ends


@app.workflow
async def asks_the_dead(ctx: Context) -> str:
    try:
        await ctx.entity(Cart, "c-1").call(Cart.add, "cup")
    except EntityFailed as error:
        return error.error.type
    return "added"


def test_callers_of_an_entity_that_was_ended_are_told(world: World) -> None:
    with world(app) as env:
        env.entity(Cart, "c-1").call(Cart.add, "cup")
        env.cancel("entity:Cart:c-1", "terminate")
        env.run_until_idle()
        with pytest.raises(RunEnded):
            env.entity(Cart, "c-1").call(Cart.add, "cup")
        assert env.start(asks_the_dead).result() == "RunEnded"


def test_callers_are_told_too_that_were_waiting_already(world: World) -> None:
    with world(app) as env:
        env.entity(Cart, "c-1").signal(Cart.sleeps)
        handle = env.start(asks_the_dead)
        env.run_until_idle()
        env.cancel("entity:Cart:c-1")
        assert handle.result() == "RunEnded"
        assert env.get("entity:Cart:c-1").status == "cancelled"
