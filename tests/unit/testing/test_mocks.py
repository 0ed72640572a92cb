"""Stand-ins are found by function or name and answer in the order of their script."""

import functools

import pytest

from durable import App, Context, RunFailed
from durable.testing import TestEnvironment

app = App("mocked")


def fetch(n: int, unit: str = "") -> str:
    return f"real {n}{unit}"


@app.workflow
async def job(ctx: Context) -> list[str]:
    return [
        await ctx.step(fetch, 1),
        await ctx.step(fetch, 2, unit="m"),
        await ctx.step("a/b", functools.partial(fetch, 3)),
    ]


def test_without_a_stand_in_the_body_runs() -> None:
    assert TestEnvironment(app).start(job).result() == ["real 1", "real 2m", "real 3"]


def test_a_function_is_replaced_wherever_it_is_called_partials_included() -> None:
    env = TestEnvironment(app)
    mock = env.mock(fetch).returns("x", "y")
    assert env.start(job).result() == ["x", "y", "y"]
    assert mock.calls == [((1,), {}), ((2,), {"unit": "m"}), ((3,), {})]


def test_a_name_replaces_the_steps_that_are_called_so_repeated_ones_included() -> None:
    env = TestEnvironment(app)
    derived, explicit = env.mock("fetch").returns("d"), env.mock("a/b").returns("e")
    assert env.start(job).result() == ["d", "d", "e"]
    assert (len(derived.calls), len(explicit.calls)) == (2, 1)


def test_a_script_mixes_failures_functions_and_values() -> None:
    env = TestEnvironment(app)
    env.mock(fetch).raises(OSError("once")).runs(lambda n, unit="": f"computed {n}").returns("last")
    assert env.start(job).result() == ["computed 1", "last", "last"]


def test_a_stand_in_without_an_answer_says_what_is_missing() -> None:
    env = TestEnvironment(app)
    env.mock("fetch")
    with pytest.raises(RunFailed, match="has no answer"):
        env.start(job).result()


def misnamed(*, then: Exception | None = None) -> None:
    with TestEnvironment(app) as env:
        env.mock("fetsh").returns("x")
        env.start(job).result()
        if then is not None:
            raise then


def test_a_name_that_no_step_has_fails_the_test_at_its_end() -> None:
    with pytest.raises(AssertionError, match=r'env.mock\("fetsh"\) .* \(steps that ran: a/b, fetch\)'):
        misnamed()


def test_a_test_that_has_failed_keeps_its_own_error() -> None:
    with pytest.raises(KeyError):
        misnamed(then=KeyError())


def test_a_stand_in_that_this_test_did_not_come_to_is_fine() -> None:
    with TestEnvironment(app) as env:
        env.mock("a/b").returns("x")
        env.mock("fetch").returns("y")
