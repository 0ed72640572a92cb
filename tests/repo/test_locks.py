"""The lock files install the same packages everywhere, from whatever index a machine uses."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tests.repo.tree import ROOT

LOCKS = sorted((ROOT / "requirements").glob("*.txt"))

_PIN = re.compile(
    r"^(?P<name>[\w.\-]+)(?:\[[\w,\-]+\])?==(?P<version>[^\s;\\]+)(?P<rest>.*(?:\n    --hash=.*)*)", re.MULTILINE
)


def pins_of(lock: Path) -> dict[str, set[Version]]:
    """The versions of each package; a package may have one for each version of Python."""
    pins: dict[str, set[Version]] = {}
    for pin in _PIN.finditer(lock.read_text(encoding="utf-8")):
        pins.setdefault(pin["name"].lower().replace("_", "-"), set()).add(Version(pin["version"]))
    return pins


def declared(*, extras: bool) -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lines: list[str] = [*project["project"]["dependencies"]]
    if extras:
        lines += [line for extra in project["project"]["optional-dependencies"].values() for line in extra]
        lines += project["dependency-groups"]["dev"]
    return [Requirement(line) for line in lines]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_names_no_address(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    assert "://" not in text
    assert "--index" not in text
    assert "--find-links" not in text


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_package_of_a_lock_is_pinned_and_hashed(lock: Path) -> None:
    pins = list(_PIN.finditer(lock.read_text(encoding="utf-8")))
    assert pins
    assert not [pin["name"] for pin in pins if "--hash=sha256:" not in pin["rest"]]


@pytest.mark.parametrize(("lock", "extras"), [("runtime.txt", False), ("dev.txt", True)])
def test_a_lock_meets_what_the_project_declares(lock: str, extras: bool) -> None:
    pins = pins_of(ROOT / "requirements" / lock)
    unmet = [
        str(requirement)
        for requirement in declared(extras=extras)
        if not any(requirement.specifier.contains(version) for version in pins.get(requirement.name.lower(), set()))
    ]
    assert not unmet, 'Run "make lock".'


def test_tests_run_on_the_versions_that_are_deployed() -> None:
    development = pins_of(ROOT / "requirements/dev.txt")
    other = {
        name: versions
        for name, versions in pins_of(ROOT / "requirements/runtime.txt").items()
        if development.get(name) != versions
    }
    assert not other
