"""No file tells where it was written: no package index by address, no folder of somebody's machine."""

import re
from pathlib import Path

import pytest

from tests.repo.tree import ROOT, project_files

# Put together from parts, or this file would be the one that is found.
REGISTRIES = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("debian", "org"),
        ("yarnpkg", "com"),
    )
]
HOME_FOLDERS = "work|root|home|Users"

_REGISTRY = re.compile("|".join(re.escape(host) for host in REGISTRIES), re.IGNORECASE)
_MACHINE_PATH = re.compile(rf"(?<![\w.\-~$}}>)\]/])/(?:{HOME_FOLDERS})/\w")


def offences_in(text: str) -> list[str]:
    return [
        f"line {number}: {found.group()}"
        for number, line in enumerate(text.splitlines(), start=1)
        for found in (*_REGISTRY.finditer(line), *_MACHINE_PATH.finditer(line))
    ]


def text_files() -> list[Path]:
    return [path for path in project_files() if b"\0" not in (ROOT / path).read_bytes()[:1024]]


def test_no_file_names_a_package_index_or_a_folder_of_one_machine() -> None:
    found = {
        str(path): offences
        for path in text_files()
        if (offences := offences_in((ROOT / path).read_text(encoding="utf-8", errors="replace")))
    }
    assert not found


@pytest.mark.parametrize("line", [f"see {REGISTRIES[0]}/simple", "cd /" + "work/main", 'open("/' + 'root/x")'])
def test_the_search_finds_what_it_is_for(line: str) -> None:
    assert offences_in(line)


@pytest.mark.parametrize("line", ["steps/work/item", "https://example.com/work/1", "runs/{id}/work/x"])
def test_the_search_leaves_ordinary_paths_alone(line: str) -> None:
    assert not offences_in(line)
