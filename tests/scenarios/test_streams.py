"""Chunks of a stream are there while the run goes on, in order, each once; a step that runs again begins its part anew."""

from typing import Any

import pytest

from durable import App, Context, Signal, Step, step_context
from durable.testing import TestEnvironment

GO = Signal("go", str)
app = App("streaming")
attempts: list[int] = []


def talk() -> int:
    attempts.append(1)
    stream = step_context().stream("talk")
    for word in ("one", "two", "three"):
        stream.append(f"{word}/{len(attempts)}")
        if len(attempts) == 1 and word == "two":
            raise ValueError("lost the thread")
    return len(attempts)


@app.workflow
async def speaking(ctx: Context) -> str:
    log = ctx.stream("talk")
    log.append({"event": "begins"})
    await ctx.step(Step(retries=1), talk)
    log.append("waits")
    last = await ctx.wait_for_signal(GO)
    log.append(last)
    return last


@pytest.fixture(autouse=True)
def _first_attempt() -> None:
    attempts.clear()


def test_chunks_are_read_while_the_run_goes_on_and_after_it_has_ended(world: Any) -> None:
    with world(app) as env:
        handle = env.start(speaking, id="s")
        env.run_until_idle()
        so_far = [{"event": "begins"}, "one/2", "two/2", "three/2", "waits"]
        assert env.read_stream("s", "talk") == so_far
        env.restart()
        handle.send(GO, "bye")
        handle.result()
        assert env.read_stream("s", "talk") == [*so_far, "bye"]
        assert env.read_stream("s", "nothing") == []


def test_a_follower_sees_every_chunk_once_and_ends_with_the_run(world: Any) -> None:
    with world(app) as env:
        handle = env.start(speaking, id="s")
        handle.send(GO, "bye")
        seen = list(env.follow_stream("s", "talk"))
        assert [chunk.value for chunk in seen if not chunk.source] == [{"event": "begins"}, "waits", "bye"]
        of_the_step = [chunk for chunk in seen if chunk.source == "talk"]
        assert [chunk.value for chunk in of_the_step] == ["one/1", "two/1", "one/2", "two/2", "three/2"]
        assert len({chunk.execution for chunk in of_the_step}) == 2


def test_a_page_goes_on_behind_the_chunk_that_was_read_last() -> None:
    with TestEnvironment(app) as env:
        env.start(speaking, id="s")
        env.run_until_idle()
        first = env.stream_page("s", "talk", limit=2)
        second = env.stream_page("s", "talk", after=first[-1].id)
        assert len(first) == 2
        assert [*first, *second] == list(env.stream_page("s", "talk"))


def test_a_follower_gives_up_when_nothing_comes() -> None:
    with TestEnvironment(app) as env:
        env.start(speaking, id="s")
        with pytest.raises(TimeoutError, match="has had nothing new for 5 s"):
            list(env.follow_stream("s", "talk", timeout=5))


def test_a_stream_outside_a_step_of_a_run_is_refused() -> None:
    with pytest.raises(LookupError):
        step_context()
