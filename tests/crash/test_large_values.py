"""Values that lie in the bucket, sealed or not, survive every crash; what died on the way leaves at most a blob too many."""

from typing import Any

import pytest

from durable import App, Context, Signal, Step, Update
from durable.client import RunHandle
from durable.testing import TestEnvironment
from tests.sealed.sealing import KeyCodec

TEXT = Signal("text", str)
ASKED = Update("asked", str, str)
LARGE = "é" * 140_000
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
async def inner(ctx: Context, text: str) -> str:
    return text


@app.workflow
async def outer(ctx: Context, text: str) -> str:
    doubled = await ctx.step(Step(retries=20).undo(undo), double, text)
    message = await ctx.mailbox.next(TEXT)
    request = await ctx.updates.next(ASKED)
    request.respond(request.arg)
    called = await ctx.call(triple, text)
    child = await ctx.child(inner, text)
    return doubled + message.body + called + child


def talk(env: TestEnvironment, handle: RunHandle[Any]) -> None:
    env.run_until_idle()
    env.send(handle.id, TEXT, LARGE, id="m-1")
    env.run_until_idle()
    handle.send_update(ASKED, LARGE, id="u-1")


@pytest.mark.parametrize("codec", [None, KeyCodec("k")], ids=["plain", "sealed"])
def test_large_values_survive_every_crash(codec: Any) -> None:
    app.codec = codec
    matrix = TestEnvironment(app).run_crash_matrix(outer, LARGE, script=talk)
    assert matrix.calls > 30
