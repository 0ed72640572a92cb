"""`durable export` prints a history and `durable replay` checks code against it: what they say, and their exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console

from durable import App, Context
from durable.cli.replay import add_replaying
from durable.testing import TestEnvironment

app = App("exported")
changed = App("changed")


def work() -> int:
    return 1


@app.workflow(name="job")
async def job(ctx: Context) -> int:
    await ctx.step(work)
    await ctx.sleep("1h")
    return 1


@changed.workflow(name="job")
async def other(ctx: Context) -> int:
    await ctx.sleep("1h")
    return 1


class FakeApi:
    def __init__(self, env: TestEnvironment) -> None:
        self._env = env

    def get(self, path: str) -> Any:
        assert path == "/runs/r/export"
        return self._env.export("r")


def run(*arguments: str) -> int:
    env = TestEnvironment(app)
    env.start(job, id="r")
    env.run_until_idle()
    cli = typer.Typer()
    api: Any = FakeApi(env)
    add_replaying(cli, lambda _: api, Console(width=300), Console(width=300, stderr=True), "http://127.0.0.1:1")
    with pytest.raises(SystemExit) as end:
        cli(list(arguments))
    assert isinstance(end.value.code, int)
    return end.value.code


@pytest.fixture
def file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert run("export", "r") == 0
    path = tmp_path / "r.json"
    path.write_text(capsys.readouterr().out, encoding="utf-8")
    return str(path)


def test_the_code_that_recorded_a_run_replays_it(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(Path(file).read_text(encoding="utf-8"))["format"] == 1
    assert run("replay", file, "--app", f"{__name__}:app") == 0
    assert 'run "r" (job 1), 1 entries' in capsys.readouterr().out


def test_code_that_diverges_is_told_and_the_exit_code_is_1(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("replay", file, file, "--app", f"{__name__}:changed") == 1
    told = capsys.readouterr().err
    assert "no longer matches the history" in told
    assert "2 of 2 histories do not replay" in told


def test_a_file_that_is_no_history_fails(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text("[]", encoding="utf-8")
    assert run("replay", file, str(wrong), "--app", f"{__name__}:app") == 1
    captured = capsys.readouterr()
    assert "its format is None" in captured.err
    assert "ok" in captured.out


@pytest.mark.parametrize("place", ["nowhere", "nowhere.at_all:app", f"{__name__}:nothing", f"{__name__}:work"])
def test_an_app_that_is_none_is_refused(file: str, place: str) -> None:
    assert run("replay", file, "--app", place) == 2
