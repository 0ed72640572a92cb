"""Of a queue's attempts no more are under way at a time than it says, and whoever waits is served in order."""

import pytest
from pydantic import BaseModel

from durable import App, Call, Context, Rate
from durable.errors import RunWasCancelled
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World


class Label(BaseModel):
    customer: str
    number: int = 0


app = App("flow")
printed: list[tuple[str, int]] = []
moments: list[float] = []


@app.remote_step(queue="labels", retries=1)
def print_label(label: Label) -> int:
    printed.append((label.customer, label.number))
    if label.customer == "broken":
        raise ValueError("no ink")
    return label.number


@app.remote_step(queue="mail", retries=0)
def send_mail(number: int) -> int:
    moments.append(number)
    return number


app.queue("labels", concurrency=1, key="customer", fairness="key")
app.queue("mail", rate=Rate(2, per="10s"))


@app.workflow
async def fulfil(ctx: Context, label: Label) -> int:
    return await ctx.call(Call(priority=label.number), print_label, label)


@app.workflow
async def tell(ctx: Context, number: int) -> int:
    return await ctx.call(send_mail, number)


@pytest.fixture(autouse=True)
def forget() -> None:
    printed.clear()
    moments.clear()


def holders(env: TestEnvironment, name: str) -> int:
    state = env.ports.store.read_lane(name, tickets=0)
    return 0 if state is None else len(state.lane.holders)


def test_every_attempt_gets_its_slot_and_gives_it_back(world: World) -> None:
    env = world(app)
    handles = [env.start(fulfil, Label(customer=c), id=f"r{n}") for n, c in enumerate("aaab")]
    assert [handle.result() for handle in handles] == [0, 0, 0, 0]
    env.run_until_idle()
    assert sorted(customer for customer, _ in printed) == ["a", "a", "a", "b"]
    assert env.ports.store.read_lane("queue:labels", tickets=1) is None
    assert env.repairs == 0


def test_an_attempt_that_fails_gives_its_slot_back_before_the_next(world: World) -> None:
    env = world(app)
    broken = env.start(fulfil, Label(customer="broken"), id="broken")
    whole = env.start(fulfil, Label(customer="a"), id="whole")
    assert whole.result() == 0
    with pytest.raises(Exception, match="no ink"):
        broken.result()
    env.run_until_idle()
    assert env.ports.store.read_lane("queue:labels", tickets=1) is None


def test_a_rate_holds_over_all_runs(world: World) -> None:
    env = world(app)
    handles = [env.start(tell, number, id=f"m{number}") for number in range(6)]
    env.run_until_idle()
    assert len(moments) == 2
    env.advance(seconds=10)
    assert 3 <= len(moments) <= 4
    assert [handle.result() for handle in handles] == list(range(6))
    assert env.repairs == 0


def test_a_run_that_is_cancelled_gives_up_its_place(world: World) -> None:
    env = world(app)
    handles = [env.start(tell, number, id=f"m{number}") for number in range(4)]
    env.run_until_idle()
    env.cancel("m2")
    assert handles[3].result() == 3
    with pytest.raises(RunWasCancelled):
        handles[2].result()
    assert moments == [0, 1, 3]


def test_a_run_that_is_terminated_gives_up_its_place(world: World) -> None:
    env = world(app)
    handles = [env.start(tell, number, id=f"m{number}") for number in range(4)]
    env.run_until_idle()
    env.terminate("m2")
    assert handles[3].result() == 3
    assert moments == [0, 1, 3]


def test_one_that_dies_at_any_call_loses_no_slot(world: World) -> None:
    env = world(app)
    env.run_crash_matrix(fulfil, Label(customer="a"))
