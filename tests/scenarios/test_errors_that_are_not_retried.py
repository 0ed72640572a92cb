"""Some failures are final at once: those that the policy or the step itself says cannot get better."""

import pytest

from durable import App, Context, NonRetryableError, RetryAfter, RunFailed, Step
from tests.scenarios.conftest import World

app = App("final")


class Refused(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code


def ask() -> str:
    return "yes"


@app.workflow
async def by_class(ctx: Context) -> str:
    return await ctx.step(Step(no_retry=(Refused,)), ask)


@app.workflow
async def by_predicate(ctx: Context) -> str:
    return await ctx.step(Step(retry_if=lambda error: isinstance(error, Refused) and error.code >= 500), ask)


@app.workflow
async def plain(ctx: Context) -> str:
    return await ctx.step(ask)


def test_no_retry_names_classes(world: World) -> None:
    env = world(app)
    mock = env.mock(ask).raises(Refused(503))
    with pytest.raises(RunFailed):
        env.start(by_class, id="r").result()
    assert len(mock.calls) == 1


def test_retry_if_is_asked_for_every_failure(world: World) -> None:
    env = world(app)
    mock = env.mock(ask).raises(Refused(503)).raises(Refused(404))
    with pytest.raises(RunFailed, match="code 404"):
        env.start(by_predicate, id="r").result()
    assert len(mock.calls) == 2


def test_a_non_retryable_error_is_not_retried(world: World) -> None:
    env = world(app)
    mock = env.mock(ask).raises(NonRetryableError("never"))
    with pytest.raises(RunFailed, match="never"):
        env.start(plain, id="r").result()
    assert len(mock.calls) == 1


def test_retry_after_sets_the_next_delay(world: World) -> None:
    env = world(app)
    mock = env.mock(ask).raises(RetryAfter("2h")).returns("yes")
    before = env.now
    assert env.start(plain, id="r").result() == "yes"
    assert len(mock.calls) == 2
    assert 7200 <= (env.now - before).total_seconds() <= 7203
