"""A recorded history passes the code that can take its run further, and fails every other with a message."""

import json
from pathlib import Path

import pytest

from durable import App, Context, InvalidInput, RunFailed, Signal, Step
from durable.testing import ReplayFailed, TestEnvironment, assert_replays

GO = Signal("go", str)


def work(n: int) -> int:
    return n


async def original(ctx: Context, n: int) -> int:
    m = await ctx.step(Step("quick", ephemeral=True), work, n)
    m = await ctx.step(work, m)
    await ctx.sleep("1h")
    return m


async def longer(ctx: Context, n: int) -> int:
    return await original(ctx, n) + await ctx.step("more", work, n)


async def renamed(ctx: Context, n: int) -> int:
    return await ctx.step("labour", work, n)


async def unwilling(ctx: Context, n: int) -> int:
    await original(ctx, n)
    raise RuntimeError("no longer")


async def texts(ctx: Context, n: str) -> str:
    return n


async def broken(ctx: Context, n: int) -> int:
    raise ValueError("broken from the start")


def deployment(fn: object, version: str = "1") -> App[None]:
    app = App("replayed")
    app.workflow(name="job", version=version)(fn)  # type: ignore[call-overload]
    return app


@pytest.fixture(params=["open", "completed"])
def history(request: pytest.FixtureRequest) -> dict[str, object]:
    env = TestEnvironment(deployment(original))
    handle = env.start("job", 7, id="r")
    env.run_until_idle()
    if request.param == "completed":
        handle.result()
    return env.export("r")


def test_the_code_that_recorded_it_passes(history: dict[str, object]) -> None:
    assert_replays(history, deployment(original))
    assert_replays(json.loads(json.dumps(history)), deployment(original))


def test_a_file_is_read(history: dict[str, object], tmp_path: Path) -> None:
    file = tmp_path / "history.json"
    file.write_text(json.dumps(history), encoding="utf-8")
    assert_replays(file, deployment(original))
    assert_replays(str(file), deployment(original))


def test_code_may_be_added_behind_what_was_done(history: dict[str, object]) -> None:
    assert_replays(history, deployment(longer))


@pytest.mark.parametrize(
    ("app", "told"),
    [
        (deployment(renamed), r'"quick".*renamed\?'),
        (deployment(texts), "input.*cannot be read as str"),
        (deployment(original, version="2"), 'version "1" is not registered'),
        (deployment(broken), "."),
    ],
    ids=["renamed", "another input", "another version", "broken"],
)
def test_code_that_would_block_or_fail_the_run_fails(history: dict[str, object], app: App[None], told: str) -> None:
    with pytest.raises(ReplayFailed, match=told):
        assert_replays(history, app)


def test_an_error_that_the_run_did_not_have_fails() -> None:
    env = TestEnvironment(deployment(original))
    env.start("job", 7, id="r").result()
    with pytest.raises(ReplayFailed, match="was completed, and now its code raises RuntimeError: no longer"):
        assert_replays(env.export("r"), deployment(unwilling))


def test_a_run_that_failed_may_fail_again() -> None:
    env = TestEnvironment(deployment(unwilling))
    with pytest.raises(RunFailed):
        env.start("job", 7, id="r").result()
    assert_replays(env.export("r"), deployment(unwilling))
    assert_replays(env.export("r"), deployment(original))


def test_a_large_input_is_in_the_document() -> None:
    env = TestEnvironment(deployment(texts))
    env.start("job", "x" * 5_000, id="r").result()
    document = env.export("r")
    assert len(document["run"]["input"]) == len(document["run"]["output"]) == 5_002
    assert_replays(document, deployment(texts))


@pytest.mark.parametrize(
    ("document", "told"),
    [({}, "its format is None"), ({"format": 2}, "its format is 2"), ({"format": 1, "run": {}}, r"run\.id: ")],
)
def test_what_is_no_history_is_refused(document: dict[str, object], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        assert_replays(document, deployment(original))
