"""A large result lies in the blob store; the history holds a reference, and steps load the value where they need it."""

from typing import Any

from pydantic import BaseModel

from durable import App, Blob, BlobGone, Context, Signal, step_context
from durable.ports import NoBlobs
from durable.testing import TestEnvironment
from durable.testing.services import Services, in_memory

GO = Signal("go", int)
app = App("offloading")


class Row(BaseModel):
    n: int
    text: str


def load_rows() -> list[Row]:
    return [Row(n=n, text="x" * 100) for n in range(5_000)]


def total(rows: Blob[list[Row]]) -> int:
    return sum(row.n for row in step_context().load(rows, list[Row]))


@app.workflow
async def summing(ctx: Context) -> tuple[int, Blob[list[Row]]]:
    rows = await ctx.offload("rows", load_rows)
    await ctx.wait_for_signal(GO)
    return await ctx.step(total, rows), rows


@app.workflow
async def lost(ctx: Context) -> int:
    return await ctx.step(total, Blob[list[Row]]("nobody/nothing", 1))


def test_the_history_holds_a_reference_and_a_step_loads_the_value(world: Any) -> None:
    with world(app) as env:
        handle = env.start(summing, id="s")
        env.run_until_idle()
        env.restart()
        handle.send(GO, 1)
        result, blob = handle.result()
        assert result == sum(range(5_000))
        assert blob.key.startswith("s/")
        assert blob.size > 500_000
        (entry,) = (entry for entry in env.history("s") if entry.location == "rows")
        assert len(entry.value) < 200
        env.ports.blobs.delete("s/")
        assert env.ports.blobs.get(blob.key) is None


def test_a_blob_that_is_gone_fails_the_step() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(lost)
        env.run_until_idle()
        failure = env.get(handle.id).error
        assert failure is not None
        assert BlobGone.__name__ in str(failure)


def test_a_stand_in_for_the_body_is_stored_like_its_result() -> None:
    with TestEnvironment(app) as env:
        env.mock(load_rows).returns([Row(n=4, text="")])
        handle = env.start(summing)
        handle.send(GO, 1)
        assert handle.result()[0] == 4


def test_dying_anywhere_changes_nothing_but_the_key() -> None:
    clean = TestEnvironment(app)
    handle = clean.start(summing)
    handle.send(GO, 1)
    handle.result()
    assert "blobs.put" in clean.calls
    for number in range(1, len(clean.calls) + 1):
        for after in (False, True):
            env = TestEnvironment(app)
            env.crash_at(number, after=after)
            handle = env.start(summing, id="s")
            handle.send(GO, 1)
            assert handle.result()[0] == sum(range(5_000))


def test_without_a_bucket_the_run_is_blocked() -> None:
    memory = in_memory()
    services = Services(
        clock=memory.clock,
        store=memory.store,
        runs=memory.runs,
        timers=memory.timers,
        new_id=memory.new_id,
        steps=memory.steps,
        blobs=NoBlobs(),
    )
    env = TestEnvironment(app, services=services)
    handle = env.start(summing)
    env.run_until_idle()
    assert "without a bucket" in str(env.get(handle.id).reason)
