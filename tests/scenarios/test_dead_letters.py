"""What a queue has given up: wakes are not needed any more, messages wait whole, and to redrive them twice is as good as once."""

import pytest

from durable import App, Context, Event, Signal
from durable.adapters.memory.queues import Queued
from durable.model.envelope import Deliver, Publish, Wake, from_body, to_body
from durable.testing import TestEnvironment

GO = Signal("go", int)
PAID = Event("paid", dict[str, str])
RECEIVES = 10
app = App("given up")
worked: list[int] = []


def work(n: int) -> int:
    worked.append(n)
    return n


@app.workflow
async def two(ctx: Context) -> list[int]:
    first = await ctx.wait_for_signal(GO)
    await ctx.step(work, first)
    return [first, await ctx.wait_for_signal(GO)]


@app.workflow
async def hears(ctx: Context) -> str:
    await ctx.wait_for_event(PAID)
    again = await ctx.wait_for_event(PAID, timeout="1h", default=None)
    return "once" if again is None else "twice"


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    worked.clear()


def dead(env: TestEnvironment) -> list[Queued]:
    return list(env.world.services.runs.dead_letters)  # type: ignore[attr-defined]


def redrive(env: TestEnvironment, letters: list[Queued]) -> None:
    """As SQS's own redrive does it: the same bodies, in the same groups."""
    for letter in letters:
        env.world.services.runs.enqueue(letter.body, group=letter.group)  # type: ignore[attr-defined]


def given_up(env: TestEnvironment, call: str) -> None:
    """Whatever is in the queue of runs fails as often as the queue allows."""
    for _ in range(RECEIVES):
        env.faults.fail_next_call(call)
    env.advance(minutes=5)


def test_ops_05_a_message_among_the_dead_letters_is_whole_and_is_read_once_however_often_it_is_redriven() -> None:
    env = TestEnvironment(app)
    handle = env.start(two, id="r")
    env.run_until_idle()
    handle.send(GO, 1, id="m-1")
    given_up(env, "store.put_message")
    letters = dead(env)
    assert [type(from_body(letter.body)) for letter in letters] == [Deliver]
    for _ in range(2):
        redrive(env, letters)
        env.advance(minutes=1)
    handle.send(GO, 2)
    redrive(env, letters)
    assert handle.result() == [1, 2]
    redrive(env, letters)
    env.run_until_idle()
    assert (worked, env.get("r").undelivered) == ([1], 0)


def test_a_wake_among_the_dead_letters_is_not_needed_any_more() -> None:
    env = TestEnvironment(app)
    env.start(two, id="r")
    given_up(env, "store.acquire")
    assert dead(env) != []
    env.advance(minutes=5)
    assert env.get("r").reason == 'signal "go"'


@pytest.mark.parametrize("times", [1, 2])
def test_ops_05_two_hundred_wakes_are_redriven_and_nothing_is_done_twice(times: int) -> None:
    env = TestEnvironment(app)
    handles = [env.start(two, id=f"r-{n}") for n in range(20)]
    for n, handle in enumerate(handles):
        handle.send(GO, n)
    env.run_until_idle()
    wakes = [Wake(run_id=f"r-{n % 20}", id=f"w-{n}", reason="overdue") for n in range(200)]
    histories = [env.history(handle.id) for handle in handles]
    for _ in range(times):
        for wake in wakes:
            env.world.services.runs.enqueue(to_body(wake), group=wake.run_id)  # type: ignore[attr-defined]
        env.run_until_idle()
    assert [env.history(handle.id) for handle in handles] == histories
    assert sorted(worked) == list(range(20))
    for handle in handles:
        handle.send(GO, 7)
    assert [handle.result() for handle in handles] == [[n, 7] for n in range(20)]
    assert env.repairs == 0


def test_an_event_that_is_redriven_is_heard_once() -> None:
    env = TestEnvironment(app)
    handle = env.start(hears)
    env.run_until_idle()
    event = Publish(event="paid", id="e-1", body="{}", at=env.now.timestamp())
    for _ in range(3):
        env.world.services.timers.enqueue(to_body(event))  # type: ignore[attr-defined]
        env.run_until_idle()
    assert handle.result() == "once"
