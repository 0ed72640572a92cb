"""`durable callback` answers what an outside system was asked."""

from collections.abc import Iterator
from typing import Any

import pytest

from durable import App, CallbackFailed, Context
from durable.testing import TestEnvironment
from tests.cli.serving import Output, commands, served

app = App("outside")
tokens: list[str] = []


@app.workflow
async def pays(ctx: Context) -> Any:
    try:
        return await ctx.callback("pay", tokens.append, dict[str, int], timeout="1 day")
    except CallbackFailed as failure:
        return [failure.error.type, failure.error.message, failure.error.data, failure.retryable]


@pytest.fixture
def env() -> TestEnvironment:
    tokens.clear()
    return TestEnvironment(app)


@pytest.fixture
def durable(env: TestEnvironment, capsys: Any) -> Iterator[Output]:
    with served(env) as url:
        yield commands(url, capsys)


def test_a_result_is_reported(durable: Output, env: TestEnvironment):
    durable("start", "pays", "--id", "r-1")
    assert durable("callback", "complete", tokens[0], '{"cents": 7}')[:2] == (0, "accepted\n")
    assert env.result("r-1") == {"cents": 7}
    assert '{"cents": 7}' in durable("show", "r-1")[1]


def test_a_failure_is_reported(durable: Output, env: TestEnvironment):
    durable("start", "pays", "--id", "r-1")
    more = ("--type", "Declined", "--data", "51", "--retryable")
    assert durable("callback", "fail", tokens[0], "no funds", *more)[0] == 0
    assert env.result("r-1") == ["Declined", "no funds", 51, True]


def test_a_token_that_is_none_is_refused(durable: Output):
    code, out, err = durable("callback", "complete", "x")
    assert (code, out) == (1, "")
    assert "token" in err
