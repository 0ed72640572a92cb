"""One id is one run: the same start again gives the same run, another input is refused, and nothing is stored for a bad one."""

import pytest

from durable import App, Context, InvalidInput, LimitExceeded, RunAlreadyExists
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


def test_pay_01_an_input_beyond_the_limit_is_refused_with_its_size(world: World) -> None:
    env = world(app)
    with pytest.raises(LimitExceeded, match=r"262,144 bytes"):
        env.start(greeting, "x" * 300_000, id="r")
    with pytest.raises(LookupError):
        env.get("r")


def test_an_idempotency_key_starts_one_run(world: World) -> None:
    env = world(app)
    first = env.start(greeting, "ann", idempotency_key="order-1")
    second = env.start(greeting, "ann", idempotency_key="order-1")
    assert first.id == second.id
