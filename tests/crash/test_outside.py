"""Whatever call an invocation dies at: an outside system's answer is taken once, and its calls in their order."""

from typing import Any

from pydantic import BaseModel

from durable import App, CallbackFailed, Context, HeartbeatTimeout, StateKey, step_context
from durable.client import RunHandle
from durable.testing import CrashMatrix, TestEnvironment

ADDRESS = StateKey("address", str)
app = App("outside")


class Receipt(BaseModel):
    number: str


TOKENS: dict[str, str] = {}


def submit(token: str) -> None:
    TOKENS[step_context().location] = token


@app.workflow
async def pays(ctx: Context) -> list[str]:
    receipt = await ctx.callback("pay", submit, Receipt, timeout="1 day", heartbeat="1h")
    try:
        await ctx.callback("ship", submit, Receipt, timeout="1 day")
    except CallbackFailed as failure:
        return [receipt.number, failure.error.message]
    return [receipt.number]


@app.workflow
async def is_silent(ctx: Context) -> str:
    try:
        await ctx.callback("pay", submit, Receipt, timeout="1 day", heartbeat="10m")
    except HeartbeatTimeout:
        return "silent"
    return "paid"


@app.workflow
async def is_called(ctx: Context) -> list[int]:
    hook = ctx.webhook("provider")
    ctx.set_state(ADDRESS, hook.url)
    first = await hook.wait(int)
    await ctx.sleep("5m")
    return [first, await hook.wait(int)]


def answers(env: TestEnvironment, handle: RunHandle[Any]) -> None:
    env.advance(minutes=30)
    env.heartbeat_callback(TOKENS["pay/submit"], 0.5)
    env.advance(minutes=45)
    env.complete_callback(TOKENS["pay/submit"], {"number": "r-1"})
    env.complete_callback(TOKENS["pay/submit"], {"number": "r-2"})
    env.advance(minutes=20)
    env.fail_callback(TOKENS["ship/submit"], "out of stock")


def beats(env: TestEnvironment, handle: RunHandle[Any]) -> None:
    env.advance(minutes=8)
    env.heartbeat_callback(TOKENS["pay/submit"])


def calls(env: TestEnvironment, handle: RunHandle[Any]) -> None:
    env.advance(minutes=20)
    url = env.get_state(handle.id, ADDRESS)
    assert url is not None
    env.call_webhook(url, 1, id="one")
    env.call_webhook(url, 2, id="one")
    env.advance(minutes=1)
    env.call_webhook(url, 3, id="one")
    env.call_webhook(url, 4, id="two")


def test_callbacks() -> None:
    assert_complete(TestEnvironment(app).run_crash_matrix(pays, script=answers), at_least=20)


def test_a_silence_after_a_sign_of_life() -> None:
    assert_complete(TestEnvironment(app).run_crash_matrix(is_silent, script=beats), at_least=10)


def test_webhooks() -> None:
    assert_complete(TestEnvironment(app).run_crash_matrix(is_called, script=calls), at_least=10)


def assert_complete(matrix: CrashMatrix, *, at_least: int) -> None:
    assert len(matrix.calls) >= at_least
    assert matrix.crashes == 4 * len(matrix.calls)
