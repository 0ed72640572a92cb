"""Values that lie in the bucket, sealed or not, survive every crash; what died on the way leaves at most a blob too many."""

from typing import Any

import pytest

from durable import App, Context, Signal, Step
from durable.client import RunHandle
from durable.testing import TestEnvironment
from tests.sealed.sealing import KeyCodec

TEXT = Signal("text", str)
app = App("large-crashes")


def double(text: str) -> str:
    return text * 2


def undo(result: str, text: str) -> None:
    if result != text * 2:
        raise ValueError("not what was done")


@app.remote_step
def triple(text: str) -> str:
    return text * 3


@app.workflow
async def outer(ctx: Context, text: str) -> str:
    doubled = await ctx.step(Step(retries=20).undo(undo), double, text)
    message = await ctx.mailbox.next(TEXT)
    return doubled + message.body + await ctx.call(triple, text)


def talk(env: TestEnvironment, handle: RunHandle[Any]) -> None:
    env.run_until_idle()
    env.send(handle.id, TEXT, handle.id * 20_000, id="m-1")


@pytest.mark.parametrize(("codec", "text"), [(None, "é" * 140_000), (KeyCodec("k"), "é")], ids=["large", "sealed"])
def test_large_and_sealed_values_survive_every_crash(codec: Any, text: str) -> None:
    app.codec = codec
    matrix = TestEnvironment(app).run_crash_matrix(outer, text, script=talk)
    assert any(call.startswith("blobs.") for call in matrix.calls) == (codec is None)
