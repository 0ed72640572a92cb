"""The environment delivers, skips time and goes wrong exactly as it is told."""

import pytest

from durable import App, Context, Deadlock, Signal
from durable.testing import TestEnvironment

GO = Signal("go", int)
app = App("env")


def work() -> str:
    return "worked"


@app.workflow
async def job(ctx: Context) -> str:
    await ctx.sleep("10m")
    return await ctx.step(work)


@app.workflow
async def listener(ctx: Context) -> int:
    return (await ctx.mailbox.next(GO)).body


def test_run_until_idle_does_not_skip_time_and_advance_stops_where_it_is_told() -> None:
    env = TestEnvironment(app)
    before = env.now
    env.start(job, id="r")
    env.run_until_idle()
    assert env.now == before
    env.advance(minutes=9)
    assert env.get("r").status == "suspended"
    env.advance("1m", seconds=1)
    assert env.get("r").status == "completed"
    assert (env.now - before).total_seconds() == 601


def test_a_timeout_of_result_passes_so_much_time_and_leaves_the_run_alone() -> None:
    env = TestEnvironment(app)
    handle = env.start(job, id="r")
    before = env.now
    with pytest.raises(TimeoutError):
        handle.result(timeout="5m")
    assert (env.now - before).total_seconds() == 300
    assert handle.result() == "worked"


def test_calls_are_named_and_counted_without_those_of_the_client() -> None:
    env = TestEnvironment(app)
    env.start(job, id="r").result()
    assert env.calls == [
        "store.acquire",
        "store.load",
        "timers.arm",
        "store.settle",
        "store.acquire",
        "store.load",
        "store.put_entry",
        "store.put_entry",
        "store.settle",
    ]


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_kills_the_invocation_at_that_call(after: bool) -> None:
    env = TestEnvironment(app)
    env.start(job, id="r")
    env.crash_at(4, after=after)
    env.run_until_idle()
    assert len(env.calls) == 4
    assert env.get("r").status == ("suspended" if after else "pending")


def test_a_duplicated_delivery_arrives_twice_and_a_dropped_one_never() -> None:
    env = TestEnvironment(app)
    handle = env.start(listener, id="r")
    env.run_until_idle()
    env.faults.drop_next()
    handle.send(GO, 1)
    env.run_until_idle()
    assert env.get("r").status == "suspended"
    env.faults.duplicate_next()
    handle.send(GO, 2, id="m2")
    env.run_until_idle()
    assert handle.result() == 2
    assert env.calls.count("store.put_message") == 2


def test_a_delayed_delivery_holds_back_what_comes_after_it() -> None:
    env = TestEnvironment(app)
    handle = env.start(listener, id="r")
    env.run_until_idle()
    env.faults.delay_next("1h")
    handle.send(GO, 1)
    handle.send(GO, 2)
    env.advance(minutes=59)
    assert env.get("r").status == "suspended"
    assert handle.result() == 1


def test_nothing_happens_during_an_outage() -> None:
    env = TestEnvironment(app)
    env.start(job, id="r")
    env.run_until_idle()
    calls = len(env.calls)
    env.outage("2h")
    assert len(env.calls) == calls
    env.run_until_idle()
    assert env.get("r").status == "completed"


def test_two_environments_know_nothing_of_each_other() -> None:
    one, other = TestEnvironment(app), TestEnvironment(app)
    one.start(job, id="r")
    with pytest.raises(LookupError):
        other.get("r")


def test_a_port_call_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match=r"store\.settle"):
        TestEnvironment(app).faults.fail_next_call("store.setle")


def test_deadlock_says_what_the_run_waits_for() -> None:
    handle = TestEnvironment(app).start(listener, id="r")
    with pytest.raises(Deadlock, match='run "r" waits for signal "go"'):
        handle.result()


def test_a_reordered_delivery_comes_after_that_of_another_run() -> None:
    env = TestEnvironment(app)
    env.faults.reorder_next()
    env.start(job, id="alone")
    env.run_until_idle()
    assert env.faults.pending  # there was nothing to swap it with
    env.start(job, id="a")
    env.start(job, id="b")
    env.faults.fail_next_call("store.load")  # the first of the two to come is tried again later
    env.run_until_idle()
    assert not env.faults.pending
    assert env.history("b") == []
    assert [run for run in ("a", "b") if env.get(run).status == "pending"] == ["b"]


def test_entries_tell_how_they_ended_and_when() -> None:
    env = TestEnvironment(app)
    env.mock(work).raises(ConnectionError).returns("worked")
    env.start(job, id="r").result()
    told = [(entry.key, entry.status) for entry in env.history("r")]
    assert told == [("sleep", "completed"), ("work@1", "failed"), ("work", "completed")]
    assert (env.history("r")[-1].recorded_at - env.history("r")[0].recorded_at).total_seconds() > 0
