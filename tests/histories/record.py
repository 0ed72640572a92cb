"""Records a history for every scenario workflow that has none: `python -m tests.histories.record [--again MODULE ...]`.

A history that is checked in is not touched, because replaying what older code has recorded is the point. `--again`
records those of the named modules anew: for a change that may break open runs, and says so in the changelog.
"""

import json
import sys
from typing import Any

import pytest

from durable.testing import InvocationKilled, ReplayFailed, TestEnvironment, assert_replays
from tests.histories.catalogue import SCENARIOS, Scenario, apps_of, scenarios, without_history

LARGE = 12_000
"""Characters of a history up to which the longer is the better; above, the shorter."""

LARGEST = 100_000
"""Characters of a history that is checked in at all."""

QUIET = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
"""pytest would rewrite the assertions of modules that this program has imported already."""

Rank = tuple[bool, bool, int, int]


class Recorder:
    """A pytest plugin that keeps the most telling history of each workflow that the tests run."""

    def __init__(self) -> None:
        self.best: dict[Scenario, tuple[Rank, dict[str, Any]]] = {}
        self._environments: list[TestEnvironment] = []
        begin = TestEnvironment.__init__

        def noted(environment: TestEnvironment, *args: Any, **kwargs: Any) -> None:
            begin(environment, *args, **kwargs)
            self._environments.append(environment)

        TestEnvironment.__init__ = noted

    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        module: Any = getattr(item, "module", None)
        apps = [] if module is None else apps_of(module)
        for environment in self._environments:
            if environment.app in apps and environment.world.deployments == 1:
                self._look_at(item.path.stem, environment)
        self._environments.clear()

    def _look_at(self, module: str, environment: TestEnvironment) -> None:
        try:
            runs = list(environment.world.services.memory.runs)
        except TypeError:
            return  # on the emulator: the same runs as in memory
        for run in runs:
            document = environment.export(run.id)
            document["run"].pop("python", None)  # the scenarios replay on every Python that the project supports
            rank = _rank(document)
            scenario = Scenario(module, run.workflow, run.version)
            if len(json.dumps(document)) > LARGEST:
                continue
            if scenario in self.best and rank <= self.best[scenario][0]:
                continue
            if _replays(document, environment):
                self.best[scenario] = (rank, document)


def _rank(document: dict[str, Any]) -> Rank:
    entries, size = document.get("entries", ()), len(json.dumps(document))
    kinds = len({entry["kind"] for entry in entries})
    return (size <= LARGE, document["run"]["status"] == "completed", kinds, len(entries) if size <= LARGE else -size)


def _replays(document: dict[str, Any], environment: TestEnvironment) -> bool:
    try:
        assert_replays(document, environment.app)
    except (ReplayFailed, InvocationKilled):
        return False  # a run that is blocked, or one whose code takes its process with it
    return True


def main(again: list[str]) -> int:
    exempt = without_history()
    wanted = [one for one in scenarios() if one.module in again or not (one.file.exists() or str(one) in exempt)]
    if not wanted:
        return 0
    modules = sorted({str(SCENARIOS / f"{one.module}.py") for one in wanted})
    recorder = Recorder()
    code = pytest.main(["-q", "-m", "not moto", "-p", "no:cacheprovider", *QUIET, *modules], plugins=[recorder])
    missing = 0
    for scenario in wanted:
        if scenario not in recorder.best:
            missing += 1
            print(f"no history: {scenario}")
            continue
        scenario.file.parent.mkdir(exist_ok=True)
        text = json.dumps(recorder.best[scenario][1], indent=1, ensure_ascii=False)
        scenario.file.write_text(text + "\n", encoding="utf-8")
    print(f"{len(wanted) - missing} histories recorded, {missing} missing")
    return int(code) or int(missing > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[2:] if sys.argv[1:2] == ["--again"] else []))
