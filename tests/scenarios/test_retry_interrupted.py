"""A retry that is cut short leaves a run that goes on or can be retried again: nothing is lost and nothing stays stuck."""

from collections.abc import Callable
from typing import Any

import pytest

from durable import App, Client, Context, NonRetryableError, RunFailed, Signal, Step, StoreUnavailable
from durable.testing import TestEnvironment
from durable.testing.interception import intercepted

app = App("interrupted")
GO = Signal("go", str)
refused: list[bool] = []


def act(what: str) -> str:
    return what


def undo(result: str, what: str) -> None:
    """Takes it back."""


def maybe() -> None:
    if refused:
        raise NonRetryableError("refused")


@app.workflow
async def order(ctx: Context) -> str:
    await ctx.step("before", act, "before")
    await ctx.step(Step("flight").undo(undo), act, "flight")
    message = await ctx.mailbox.next(GO)
    await ctx.step(maybe)
    return message.body


class DiesAt:
    """Lets so many port calls of the client pass, the last one with or without its effect, and none after."""

    def __init__(self, number: int, *, after: bool) -> None:
        self.left = number
        self.after = after

    def __call__(self, name: str, perform: Callable[[], Any], /) -> Any:
        self.left -= 1
        if self.left > 0:
            return perform()
        if self.left == 0 and self.after:
            perform()
        raise StoreUnavailable(f"{name} did not answer")


@pytest.mark.parametrize("number", range(1, 11))
@pytest.mark.parametrize("after", [False, True])
def test_dying_at_any_call_of_a_retry(number: int, after: bool) -> None:
    env = TestEnvironment(app)
    refused[:] = [True]
    handle = env.start(order, id="r")
    handle.send(GO, "hello", id="m")
    with pytest.raises(RunFailed):
        handle.result()
    refused.clear()
    client = Client(app, intercepted(env.ports, DiesAt(number, after=after)))
    try:
        client.retry("r")
    except StoreUnavailable:
        env.advance(minutes=5)
    try:
        assert handle.result() == "hello"
    except RunFailed:
        env.retry("r")
        assert handle.result() == "hello"
    assert [entry.key for entry in env.history("r") if "@" not in entry.mark] == [
        "before",
        "flight!",
        "flight",
        "go",
        "maybe",
    ]
    assert env.get("r").undelivered == 0
