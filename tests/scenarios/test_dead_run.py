"""A run whose invocations die again and again without a result is given up, and says so."""

import pytest
from pydantic import BaseModel, model_validator

from durable import App, Context, RunDead
from durable.testing import kill_process
from tests.scenarios.conftest import World

app = App("dead")
deadly: list[bool] = []


class Poison(BaseModel):
    """Takes the process with it when it is read, while it is deadly."""

    n: int

    @model_validator(mode="after")
    def strike(self) -> "Poison":
        if deadly:
            kill_process()
        return self


@app.workflow
async def doomed(ctx: Context, poison: Poison) -> int:
    return poison.n


@pytest.fixture
def poisoned() -> object:
    deadly.clear()
    yield
    deadly.clear()


def test_a_run_is_dead_after_more_than_ten_dead_turns(world: World, poisoned: object) -> None:
    env = world(app)
    handle = env.start(doomed, Poison(n=1), id="r")
    deadly.append(True)
    with pytest.raises(RunDead, match="11 invocations in a row"):
        handle.result()
    assert env.get("r").status == "dead"
    assert env.calls.count("store.acquire") >= 11


def test_a_run_that_dies_nine_times_goes_on(world: World, poisoned: object) -> None:
    env = world(app)
    handle = env.start(doomed, Poison(n=1), id="r")
    deadly.append(True)
    while env.get("r").epoch - env.get("r").born < 9:
        env.advance(minutes=1)
    deadly.clear()
    assert handle.result() == 1
