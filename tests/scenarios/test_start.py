"""One id is one run: the same start again gives the same run, another input is refused, and nothing is stored for a bad one."""

from dataclasses import replace

import pytest

from durable import App, Context, InvalidInput, LimitExceeded, RunAlreadyExists
from durable.ports import NoBlobs
from durable.testing import TestEnvironment
from durable.testing.services import in_memory
from tests.scenarios.conftest import World

app = App("start")


def greet(name: str) -> str:
    return f"hello {name}"


@app.workflow
async def greeting(ctx: Context, name: str) -> str:
    return await ctx.step(greet, name)


def test_con_03_starting_twice_with_the_same_input_is_one_run(world: World) -> None:
    env = world(app)
    mock = env.mock(greet).returns("hello ann")
    first, second = env.start(greeting, "ann", id="r"), env.start(greeting, "ann", id="r")
    assert first.result() == second.result() == "hello ann"
    assert env.start(greeting, "ann", id="r").result() == "hello ann"
    assert len(mock.calls) == 1


def test_the_same_id_with_another_input_is_refused(world: World) -> None:
    env = world(app)
    env.start(greeting, "ann", id="r")
    with pytest.raises(RunAlreadyExists, match='"r"'):
        env.start(greeting, "bob", id="r")


def test_input_of_the_wrong_type_is_refused_and_nothing_is_stored(world: World) -> None:
    env = world(app)
    with pytest.raises(InvalidInput):
        env.start(greeting, 3, id="r")  # type: ignore[arg-type]
    with pytest.raises(LookupError):
        env.get("r")


def test_pay_01_an_input_that_is_no_item_is_kept_apart(world: World) -> None:
    env = world(app)
    assert env.start(greeting, "x" * 500_000, id="r").result() == "hello " + "x" * 500_000


def test_pay_01_without_a_bucket_it_is_refused_with_its_size_and_the_way_out() -> None:
    env = TestEnvironment(app, services=replace(in_memory(), blobs=NoBlobs()))
    with pytest.raises(LimitExceeded, match=r"300,002 bytes; the limit is 262,144 bytes.*DURABLE_BUCKET"):
        env.start(greeting, "x" * 300_000, id="r")
    with pytest.raises(LookupError):
        env.get("r")


def test_an_idempotency_key_starts_one_run(world: World) -> None:
    env = world(app)
    first = env.start(greeting, "ann", idempotency_key="order-1")
    second = env.start(greeting, "ann", idempotency_key="order-1")
    assert first.id == second.id
