"""Troubles with messages that users of such systems have had, tried on this one."""

import pytest

from durable import App, Branch, Context, InvalidName, RunEnded, RunNotFound, Signal
from durable.errors import StoreUnavailable
from durable.testing import TestEnvironment
from tests.cases.http import caller

ITEM = Signal("item", int)
OTHER = Signal("other", int)
GO = Signal("go", str)
app = App("messages")


def work() -> str:
    return "worked"


@app.workflow
async def works_first(ctx: Context) -> int:
    await ctx.step(work)
    await ctx.sleep(10)
    return await ctx.wait_for_signal(ITEM)


def test_MSG_01_a_message_sent_right_after_the_start_is_kept_for_the_wait_that_comes_late() -> None:
    env = TestEnvironment(app)
    handle = env.start(works_first)
    handle.send(ITEM, 7)
    assert handle.result() == 7


@app.workflow
async def item_twice(ctx: Context) -> list[int | None]:
    await ctx.sleep(1)
    first = await ctx.wait_for_signal(ITEM, timeout="1h", default=None)
    return [first, await ctx.wait_for_signal(ITEM, timeout=5, default=None)]


def test_MSG_02_an_early_message_satisfies_one_wait_only() -> None:
    env = TestEnvironment(app)
    handle = env.start(item_twice, id="r")
    handle.send(ITEM, 1)
    assert handle.result() == [1, None]
    assert [len(entry.messages) for entry in env.history("r")] == [0, 1, 0]


@app.workflow
async def waits_again(ctx: Context) -> list[str | None]:
    first = await ctx.wait_for_signal(GO, timeout=2, default=None)
    return [first, await ctx.wait_for_signal(GO, timeout=30, default=None)]


def test_MSG_03_a_wait_that_timed_out_does_not_swallow_the_next_message() -> None:
    env = TestEnvironment(app)
    handle = env.start(waits_again)
    env.advance(seconds=5)
    handle.send(GO, "go")
    assert handle.result() == [None, "go"]


async def hears(ctx: Context) -> int:
    return await ctx.wait_for_signal(ITEM)


async def naps(ctx: Context) -> None:
    await ctx.sleep(2)


@app.workflow
async def racing(ctx: Context, count: int) -> list[int]:
    seen: list[int] = []
    for n in range(10 * count):
        message = Branch("message", hears)
        winner = await ctx.race(f"round-{n}", message, Branch("time", naps))
        if message.won(winner):
            seen.append(winner.value)
        if len(seen) == count:
            break
    return seen


def test_MSG_04_a_race_of_messages_against_time_loses_none() -> None:
    env = TestEnvironment(app)
    handle = env.start(racing, 60)
    for n in range(60):
        handle.send(ITEM, n)
        env.advance(seconds=(0.0, 1.2, 2.0, 2.0, 2.6, 4.0, 1.999)[n % 7])
    assert handle.result() == list(range(60))


@app.workflow
async def one_item(ctx: Context) -> int:
    item = await ctx.wait_for_signal(ITEM)
    await ctx.step(work)
    return item


def test_MSG_05_a_message_survives_the_death_of_whoever_has_read_it() -> None:
    def sends(env: TestEnvironment, handle) -> None:
        env.run_until_idle()
        handle.send(ITEM, 5, id="m-1")

    matrix = TestEnvironment(app).run_crash_matrix(one_item, script=sends)
    assert "store.put_message" in matrix.calls


@app.workflow
async def generations(ctx: Context, before: list[int]) -> list[int]:
    seen = [*before, *[await ctx.wait_for_signal(ITEM) for _ in range(10)]]
    if len(seen) == 100:
        return seen
    return await ctx.continue_as_new(generations, seen)


def test_MSG_06_MSG_07_a_stream_of_messages_crosses_continue_as_new_whole_and_no_sender_is_refused() -> None:
    env = TestEnvironment(app)
    handle = env.start(generations, [], id="r")
    for n in range(100):
        handle.send(ITEM, n)
        env.advance(seconds=0.05)
    assert handle.result() == list(range(100))
    assert len(env.world.services.memory.runs) == 10


@pytest.mark.parametrize("n", range(0, 60, 3))
def test_MSG_07_a_sender_at_any_moment_of_the_turn_over_is_heard(n: int) -> None:
    env = TestEnvironment(app)
    handle = env.start(generations, [*range(80)], id="r")
    for k in range(80, 99):
        handle.send(ITEM, k)
    env.faults.meanwhile(lambda: handle.send(ITEM, 99), at=n + 1)
    env.run_until_idle()
    if env.faults.pending:
        pytest.skip("the turns make fewer calls")
    assert handle.result() == list(range(100))


@app.workflow
async def one_vote(ctx: Context) -> int:
    await ctx.wait_for_signal(ITEM)
    return len(await ctx.mailbox.next_batch(ITEM, count=3))


def test_MSG_08_of_a_burst_all_are_visible_and_the_rest_is_listed_as_unread() -> None:
    env = TestEnvironment(app)
    handle = env.start(one_vote, id="r")
    for n in range(5):
        handle.send(ITEM, n)
    assert handle.result() == 3
    assert env.get("r").undelivered == 1


def test_MSG_09_whoever_messages_or_cancels_a_run_that_is_not_there_is_told_why() -> None:
    env = TestEnvironment(app)
    done = env.start(one_vote, id="done")
    for n in range(4):
        done.send(ITEM, n)
    done.result()
    env.start(one_vote, id="cancelled")
    env.run_until_idle()
    env.cancel("cancelled")
    env.run_until_idle()
    gone = env.start(one_vote, id="gone")
    gone.send(ITEM, 1)
    env.terminate("gone")
    env.world.services.store.delete_run("gone")
    for run_id, error, told in (
        ("never", RunNotFound, "never"),
        ("gone", RunNotFound, "gone"),
        ("done", RunEnded, "completed"),
        ("cancelled", RunEnded, "cancelled"),
    ):
        with pytest.raises(error, match=told):
            env.send(run_id, ITEM, 1)
        with pytest.raises(error, match=told):
            env.cancel(run_id)
        status = 404 if error is RunNotFound else 409
        for path, body in (("messages", {"name": "item", "body": 1}), ("cancel", {})):
            assert caller(env)("POST", f"/runs/{run_id}/{path}", body)["statusCode"] == status


def test_MSG_10_an_id_that_is_spelled_another_way_is_another_run_and_loudly_so() -> None:
    env = TestEnvironment(app)
    with pytest.raises(InvalidName, match="letters, digits and"):
        env.start(one_vote, id='{"id":1,"s":"a"}')
    env.start(one_vote, id="id=1:s=a")
    with pytest.raises(RunNotFound, match="s=a:id=1"):
        env.send("s=a:id=1", ITEM, 1)


@app.workflow
async def two_items(ctx: Context) -> list[int]:
    return [await ctx.wait_for_signal(ITEM), await ctx.wait_for_signal(ITEM)]


def test_MSG_11_the_id_of_a_message_counts_for_its_recipient_alone() -> None:
    env = TestEnvironment(app)
    handles = [env.start(two_items, id=name) for name in ("r1", "r2")]
    for _ in range(3):  # later than any queue remembers
        for handle in handles:
            handle.send(ITEM, 1, id="k1")
        env.advance(minutes=10)
    for handle in handles:
        handle.send(ITEM, 2, id="k2")
    assert [handle.result() for handle in handles] == [[1, 2], [1, 2]]
    assert [env.get(handle.id).undelivered for handle in handles] == [0, 0]


async def hears_other(ctx: Context) -> int:
    return await ctx.wait_for_signal(OTHER)


@app.workflow
async def either(ctx: Context) -> int:
    return (await ctx.race("either", Branch("item", hears), Branch("other", hears_other))).value


def test_MSG_12_a_losing_wait_does_not_keep_the_run_alive() -> None:
    env = TestEnvironment(app)
    handle = env.start(either, id="r")
    env.run_until_idle()
    handle.send(ITEM, 1)
    env.run_until_idle()
    assert env.get("r").status == "completed"
    with pytest.raises(RunEnded, match="completed"):
        handle.send(OTHER, 2)


def test_MSG_13_a_send_that_was_not_accepted_raises_and_an_accepted_one_is_seen() -> None:
    class Refusing:
        def send(self, envelope: object) -> None:
            raise StoreUnavailable("SQS: throttled")

    env = TestEnvironment(app)
    handle = env.start(one_item, id="r")
    env.run_until_idle()
    accepting = env.ports.runs
    object.__setattr__(env.ports, "runs", Refusing())
    with pytest.raises(StoreUnavailable):
        handle.send(ITEM, 1)
    object.__setattr__(env.ports, "runs", accepting)
    handle.send(ITEM, 2)
    env.faults.fail_next_call("store.put_message")
    assert handle.result() == 2


def test_MSG_14_a_message_is_heard_as_soon_as_it_is_delivered() -> None:
    env = TestEnvironment(app)
    handles = [env.start(one_item) for _ in range(200)]
    env.run_until_idle()
    before = env.now
    for handle in handles:
        handle.send(ITEM, 1)
    env.run_until_idle()
    assert {handle.status() for handle in handles} == {"completed"}
    assert (env.now - before).total_seconds() < 5


@app.workflow
async def ordered(ctx: Context) -> list[int]:
    others = [await ctx.wait_for_signal(OTHER)]
    return [await ctx.wait_for_signal(ITEM) for _ in range(4)] + others


def test_MSG_15_stored_messages_are_first_in_first_out_per_name() -> None:
    env = TestEnvironment(app)
    handle = env.start(ordered)
    for signal, n in ((ITEM, 1), (ITEM, 2), (ITEM, 3), (OTHER, 10), (ITEM, 4)):
        handle.send(signal, n)
    assert handle.result() == [1, 2, 3, 4, 10]
