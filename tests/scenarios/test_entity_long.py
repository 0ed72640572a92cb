"""Ten thousand operations on one key: the last ones cost what the first ones did, and what is stored keeps its size."""

from collections import Counter

from pydantic import BaseModel

from durable import App
from durable.testing import TestEnvironment

app = App("long-lived")


@app.entity
class Tally(BaseModel):
    count: int = 0

    def add(self) -> int:
        self.count += 1
        return self.count


def cost_of_one(env: TestEnvironment) -> Counter[str]:
    before = len(env.calls)
    env.entity(Tally, "t").call(Tally.add)
    return Counter(env.calls[before:])


def cost_of_eight(env: TestEnvironment) -> Counter[str]:
    before = len(env.calls)
    signal_eight(env)
    return Counter(env.calls[before:])


def signal_eight(env: TestEnvironment) -> None:
    for _ in range(8):
        env.entity(Tally, "t").signal(Tally.add)
    env.run_until_idle()


def count_to(env: TestEnvironment, n: int) -> None:
    while env.entity(Tally, "t").state().count < n - 8:
        for _ in range(20):
            signal_eight(env)


def test_the_cost_of_an_operation_does_not_grow() -> None:
    env = TestEnvironment(app)
    count_to(env, 100)
    early_one, early_eight = cost_of_one(env), cost_of_eight(env)
    early = len(env.world.services.memory.history("entity:Tally:t"))
    count_to(env, 9_900)
    cost_of_one(env)
    assert (cost_of_one(env), cost_of_eight(env)) == (early_one, early_eight)
    assert early_one.total() <= 12
    assert early_eight.total() <= 8 * 5 + 9
    assert len(env.world.services.memory.history("entity:Tally:t")) <= early <= 20
    assert len(env.world.services.memory.mailbox("entity:Tally:t")) <= 8
