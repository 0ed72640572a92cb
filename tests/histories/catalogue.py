"""Which workflows the scenarios have, and where the recorded history of each is kept."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from durable import App, Workflow

HERE = Path(__file__).parent
SCENARIOS = HERE.parent / "scenarios"
WITHOUT = HERE / "without.txt"


@dataclass(frozen=True, slots=True)
class Scenario:
    """A workflow of a scenario's module-level app."""

    module: str
    workflow: str
    version: str

    @property
    def file(self) -> Path:
        name = self.workflow.replace(":", ".")  # not every file system has colons in names
        return HERE / self.module.removeprefix("test_") / f"{name}-{self.version}.json"

    @property
    def app(self) -> App[Any]:
        module = import_module(f"tests.scenarios.{self.module}")
        return next(app for app in apps_of(module) for known in app.workflows if self.is_that(known))

    def is_that(self, workflow: Workflow[Any, Any]) -> bool:
        return (workflow.name, workflow.version) == (self.workflow, self.version)

    def __str__(self) -> str:
        return f"{self.module} {self.workflow} {self.version}"


def apps_of(module: ModuleType) -> list[App[Any]]:
    return [value for value in vars(module).values() if isinstance(value, App)]


def scenarios() -> Iterator[Scenario]:
    """Every workflow that the scenarios register in an app of their module."""
    for path in sorted(SCENARIOS.glob("test_*.py")):
        module = import_module(f"tests.scenarios.{path.stem}")
        for app in apps_of(module):
            for workflow in app.workflows:
                yield Scenario(path.stem, workflow.name, workflow.version)


def without_history() -> dict[str, str]:
    """Scenarios that cannot have one, with the reason."""
    rows = [line for line in WITHOUT.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return {place.strip(): reason.strip() for place, reason in (row.split("|", 1) for row in rows)}
