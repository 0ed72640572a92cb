"""A lineage of hundreds of runs answers its oldest id with few requests."""

from collections.abc import Callable
from typing import Any

from durable import App, Context
from durable.client import Client
from durable.testing.interception import intercepted
from tests.scenarios.conftest import World

app = App("long lineages")


@app.workflow
async def again(ctx: Context, n: int) -> int:
    if n == 300:
        return n
    return await ctx.continue_as_new(again, n + 1)


def test_a_long_lineage_is_gone_through_in_leaps(world: World) -> None:
    env = world(app)
    handle = env.start(again, 1, id="r")
    assert handle.result() == 300
    asked: list[str] = []

    def count(name: str, perform: Callable[[], Any]) -> Any:
        asked.append(name)
        return perform()

    client = Client(app, intercepted(env.ports, count))
    assert client.get("r").id == "r~300"
    assert len(asked) < 60
