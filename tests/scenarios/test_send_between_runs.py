"""A message from run to run is sent once, whatever the replays and crashes of the sender."""

from __future__ import annotations

from durable import App, Context, RunNotFound, Signal
from durable.testing import TestEnvironment

app = App("post")
LETTER = Signal("letter", str)


@app.workflow
async def writer(ctx: Context) -> str:
    await ctx.mailbox.send("reader", LETTER, "first")
    await ctx.sleep("1h")
    await ctx.mailbox.send("reader", LETTER, "second", delay="5m")
    await ctx.sleep("1h")
    return "written"


@app.workflow
async def reader(ctx: Context) -> list[str]:
    letters = [(await ctx.mailbox.next(LETTER)).body for _ in range(2)]
    late = await ctx.mailbox.next(LETTER, timeout="1 day", default=None)
    return letters if late is None else [*letters, late.body]


def test_each_letter_arrives_once_and_in_order_although_every_turn_replays() -> None:
    with TestEnvironment(app) as env:
        received = env.start(reader, id="reader")
        written = env.start(writer, id="writer")
        for _ in range(6):
            env.restart()
            env.advance(minutes=30)
        assert written.result() == "written"
        assert received.result() == ["first", "second"]


def test_a_crash_between_the_record_and_the_send_repeats_it_and_the_reader_takes_it_once() -> None:
    calls = 0
    with TestEnvironment(app) as env:
        env.start(reader, id="reader")
        env.run_until_idle()
        env.start(writer, id="writer")
        before = len(env.calls)
        env.run_until_idle()
        calls = env.calls[before:].index("runs.send") + 1
    for after in (False, True):
        with TestEnvironment(app) as env:
            received = env.start(reader, id="reader")
            env.run_until_idle()
            written = env.start(writer, id="writer")
            env.crash_at(calls, after=after)
            assert written.result() == "written"
            assert received.result() == ["first", "second"]


def test_a_letter_to_nobody_does_not_stop_the_writer() -> None:
    with TestEnvironment(app) as env:
        assert env.start(writer, id="writer").result() == "written"
        try:
            env.get("reader")
        except RunNotFound:
            return
        raise AssertionError("a message must not make a run")
