"""A step whose result would not come back as it is fails at its first attempt, naming what is wrong."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from durable import App, Context, RunFailed
from tests.scenarios.conftest import World

app = App("unstorable")


def make() -> Any:
    return None


@app.workflow
async def keeper(ctx: Context) -> str:
    await ctx.step("make", make)
    return "kept"


@pytest.mark.parametrize(
    "result",
    [
        threading.Lock,
        lambda: {1: "a"},
        lambda: {"t": (1, 2)},
        lambda: "\ud83d",
        lambda: float("nan"),
    ],
)
def test_pay_05_rty_01_such_a_result_fails_the_step_without_another_attempt(
    world: World, result: Callable[[], Any]
) -> None:
    env = world(app)
    mock = env.mock("make").runs(result)
    with pytest.raises(RunFailed, match="make"):
        env.start(keeper, id="r").result()
    assert len(mock.calls) == 1
