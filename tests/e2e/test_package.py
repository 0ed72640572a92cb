"""What SAM packs for Lambda."""

import re
from pathlib import Path

import pytest

from tests.e2e.deployment import ROOT, Sam

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

OURS = {"durable", "handlers", "examples", "requirements.txt"}
FUNCTIONS = ("ApiFunction", "OrchestratorFunction", "RemoteStepsFunction", "EventsFunction", "MaintenanceFunction")


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_package_holds_our_code_and_the_locked_requirements_and_nothing_else(sam: Sam, function: str) -> None:
    package = sam.built / function
    lock = (ROOT / "requirements" / "runtime.txt").read_text()
    locked = {(normal(name), version) for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", lock, re.MULTILINE)}
    assert installed(package) == locked
    entries = {entry.name for entry in package.iterdir()}
    assert entries >= OURS
    assert entries.isdisjoint({"tests", "docs", "infra", ".venv", "moto", "samtranslator", "typer", "rich"})


@pytest.mark.parametrize("part", ["durable", "handlers", "examples"])
def test_every_module_is_in_the_package(sam: Sam, part: str) -> None:
    assert modules(sam.built / "OrchestratorFunction" / part) == modules(ROOT / part)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_package_fits_into_lambda(sam: Sam, function: str) -> None:
    unpacked = sum(file.stat().st_size for file in (sam.built / function).rglob("*") if file.is_file())
    assert unpacked < 100_000_000, "Lambda refuses 250 MB, and a cold start pays for every one of them"


def installed(package: Path) -> set[tuple[str, str]]:
    names = [entry.name.removesuffix(".dist-info") for entry in package.glob("*.dist-info")]
    return {(normal(name), version) for name, _, version in (name.rpartition("-") for name in names)}


def modules(folder: Path) -> set[str]:
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*.py")}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
