"""What a run is given to pass on reaches its code, its steps, its children and whoever goes on in its place."""

import asyncio
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

import pytest

from durable import App, Context, Event, InvalidName, LimitExceeded, RunFailed, Signal, Step, step_context
from durable.client import Client
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World

TENANT: ContextVar[str] = ContextVar("tenant", default="nobody")
HEADERS = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tenant": "acme"}
GO = Signal("go", str)
ORDERED = Event("ordered", str)

app = App("headers")
tenants = App("tenants")


def seen_by_step() -> dict[str, str]:
    return dict(step_context().headers)


@app.workflow
async def telling(ctx: Context) -> dict[str, str]:
    return await ctx.step(seen_by_step) if ctx.run.headers else {}


@app.remote_step
def seen_by_worker() -> dict[str, str]:
    return dict(step_context().headers)


@app.workflow
async def calling(ctx: Context) -> dict[str, str]:
    return await ctx.call(seen_by_worker)


@app.workflow
async def parent(ctx: Context) -> dict[str, str]:
    return await ctx.child(telling)


@app.workflow
async def going_on(ctx: Context, times: int) -> dict[str, str]:
    if times:
        await ctx.continue_as_new(going_on, times - 1)
    return await ctx.step(seen_by_step)


@app.workflow
async def starting(ctx: Context) -> str:
    await ctx.wait_for_signal(GO)
    return ctx.run.headers.get("tenant", "")


@app.workflow
async def on_order(ctx: Context, order: str) -> str:
    return ctx.run.headers.get("tenant", "")


app.on_event(ORDERED, on_order)


@tenants.propagate
class Tenant:
    """As an app would do it."""

    @staticmethod
    def capture() -> dict[str, str]:
        return {"tenant": TENANT.get()}

    @staticmethod
    @contextmanager
    def restore(headers: Mapping[str, str]) -> Generator[None]:
        token = TENANT.set(headers["tenant"])
        try:
            yield
        finally:
            TENANT.reset(token)


def tenant_of_step() -> str:
    return TENANT.get()


async def tenant_of_async_step() -> str:
    await asyncio.sleep(0)
    return TENANT.get()


def fails_at_first() -> str:
    if step_context().attempt == 1:
        raise ConnectionError
    return TENANT.get()


@tenants.remote_step
async def tenant_of_worker() -> str:
    return TENANT.get()


@tenants.workflow
async def in_remote_step(ctx: Context) -> str:
    return await ctx.call(tenant_of_worker)


undone: list[str] = []


def undo(_result: str) -> None:
    undone.append(TENANT.get())


@tenants.workflow
async def in_steps(ctx: Context) -> list[str]:
    first, second = await ctx.step(tenant_of_step), await ctx.step(tenant_of_async_step)
    return [TENANT.get(), first, second, await ctx.step(fails_at_first)]


@tenants.workflow
async def rolled_back(ctx: Context) -> None:
    await ctx.step(Step().undo(undo), tenant_of_step)
    raise ValueError("no")


@contextmanager
def acting_for(tenant: str) -> Generator[None]:
    token = TENANT.set(tenant)
    try:
        yield
    finally:
        TENANT.reset(token)


def test_workflow_code_and_steps_see_them(world: World) -> None:
    with world(app) as env:
        assert env.start(telling, headers=HEADERS).result() == HEADERS
        assert env.start("telling").result() == {}


def test_a_remote_step_sees_them(world: World) -> None:
    with world(app) as env:
        assert env.start(calling, headers=HEADERS).result() == HEADERS


def test_an_event_gives_them_to_the_run_that_it_starts(world: World) -> None:
    with world(app) as env:
        env.publish_event(ORDERED, "order-1", headers=HEADERS)
        env.run_until_idle()
        [row] = env.list("on_order").runs
        assert env.result(row.id) == "acme"


def test_a_child_has_those_of_its_parent(world: World) -> None:
    with world(app) as env:
        assert env.start(parent, headers=HEADERS).result() == HEADERS


def test_whoever_goes_on_as_new_keeps_them(world: World) -> None:
    with world(app) as env:
        assert env.start(going_on, 2, headers=HEADERS).result() == HEADERS


def test_a_run_that_a_message_starts_has_them(world: World) -> None:
    with world(app) as env:
        handle = env.start_with_message(starting, None, GO, "x", id="r", headers=HEADERS)
        assert handle.result() == "acme"
        assert env.get("r").headers == HEADERS


def test_they_survive_a_cold_start(world: World) -> None:
    with world(app) as env:
        handle = env.start(starting, headers=HEADERS)
        env.run_until_idle()
        env.restart()
        handle.send(GO, "x")
        assert handle.result() == "acme"


def test_the_same_start_with_other_headers_is_the_same_start(world: World) -> None:
    with world(app) as env:
        env.start(telling, id="r", headers=HEADERS)
        assert env.start(telling, id="r", headers={"tenant": "other"}).result() == HEADERS


def test_what_is_not_allowed_is_refused_before_anything_is_stored(world: World) -> None:
    with world(app) as env:
        with pytest.raises(LimitExceeded, match=r"headers.*600.*512"):
            env.start(telling, id="r", headers={"note": "x" * 596})
        with pytest.raises(InvalidName):
            env.start(telling, id="r", headers={"Tenant": "acme"})
        assert not env.list().runs


def test_a_carrier_is_asked_at_the_start_and_entered_around_every_attempt() -> None:
    with TestEnvironment(tenants) as env:
        with acting_for("acme"):
            handle = env.start(in_steps)
        assert handle.result() == ["nobody", "acme", "acme", "acme"]
        assert TENANT.get() == "nobody"


def test_headers_that_are_given_come_before_what_is_captured() -> None:
    with TestEnvironment(tenants) as env, acting_for("acme"):
        handle = env.start(in_steps, headers={"tenant": "other"})
        assert handle.result()[1:] == ["other"] * 3


def test_a_carrier_is_entered_around_a_remote_step() -> None:
    with TestEnvironment(tenants) as env:
        with acting_for("acme"):
            handle = env.start(in_remote_step)
        assert handle.result() == "acme"


def test_a_carrier_is_entered_around_an_undo_too() -> None:
    with TestEnvironment(tenants) as env:
        with acting_for("acme"):
            handle = env.start(rolled_back)
        with pytest.raises(RunFailed):
            handle.result()
    assert undone.pop() == "acme"


def test_what_a_step_starts_is_captured_inside_the_step() -> None:
    inner = App("starting in steps")
    inner.propagate(Tenant)
    clients: list[Client] = []

    def start_another() -> str:
        return clients[0].start(seen).id

    @inner.workflow
    async def seen(ctx: Context) -> str:
        return ctx.run.headers["tenant"]

    @inner.workflow
    async def outer(ctx: Context) -> str:
        return await ctx.step(start_another)

    with TestEnvironment(inner) as env:
        clients.append(env)
        with acting_for("acme"):
            handle = env.start(outer)
        assert env.result(handle.result()) == "acme"
