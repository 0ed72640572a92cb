"""The Python in README.md and docs/ runs: the snippets of a page one after another, in one namespace.

A block that opens with ```python no-run is compiled only: it shows a fragment, or needs something that a test has not.
"""

import re
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.repo.tree import ROOT, files_with, text_of

_BLOCK = re.compile(
    r"^(?P<indent>[ ]*)```(?:python|py)(?P<flags>[^\n]*)\n(?P<code>.*?)^(?P=indent)```[ ]*$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Snippet:
    line: int
    code: str
    runs: bool


def snippets_of(page: str) -> list[Snippet]:
    """The Python blocks of a page, each with the line where its code begins."""
    return [
        Snippet(
            line=page.count("\n", 0, block.start("code")) + 1,
            code=re.sub(f"^{block['indent']}", "", block["code"], flags=re.MULTILINE),
            runs="no-run" not in block["flags"].split(),
        )
        for block in _BLOCK.finditer(page)
    ]


def pages() -> list[Path]:
    readmes = [path for path in files_with(".md") if path.name == "README.md"]
    return [page for page in sorted({*readmes, *files_with(".md", "docs")}) if snippets_of(text_of(page))]


@pytest.fixture
def namespace() -> Iterator[dict[str, object]]:
    """A module of its own: models and annotations are looked up by the module's name."""
    module = types.ModuleType("snippets_of_a_page")
    sys.modules[module.__name__] = module
    yield module.__dict__
    del sys.modules[module.__name__]


@pytest.mark.parametrize("page", pages(), ids=str)
def test_the_snippets_of_a_page_run_in_order(page: Path, namespace: dict[str, object], monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    for snippet in snippets_of(text_of(page)):
        # Empty lines before the code make a traceback point into the page.
        code = compile("\n" * (snippet.line - 1) + snippet.code, str(ROOT / page), "exec", dont_inherit=True)
        if snippet.runs:
            exec(code, namespace)  # noqa: S102 - the project's own pages


def test_a_snippet_knows_its_line_and_whether_it_runs() -> None:
    page = "# Title\n\n```python\na = 1\n```\n\n- item\n  ```python no-run\n  b = a +\n  ```\n"
    assert snippets_of(page) == [Snippet(4, "a = 1\n", runs=True), Snippet(9, "b = a +\n", runs=False)]
