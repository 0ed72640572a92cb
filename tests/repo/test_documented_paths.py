"""Pages point at files that exist."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.repo.tree import ROOT, files_with, text_of

WHERE_IS_IT = Path("docs/where-is-it.md")

# A path in back quotes: it has a slash, or is a file at the root such as `Makefile` or `template.yaml`.
_PATH = re.compile(r"`([\w.\-]+(?:/[\w.\-]+)*/?)(?:::[\w.]+)?`")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(<?([^)<>\s]+)>?(?:\s+\"[^\"]*\")?\)|!\[[^\]]*\]\(<?([^)<>\s]+)>?\)")
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


def paths_named_in(page: str) -> list[str]:
    """What in back quotes is meant as a path: with a slash, or with the suffix of a file."""
    return [
        name
        for name in _PATH.findall(_FENCE.sub("", page))
        if "/" in name or Path(name).suffix in {".py", ".md", ".toml", ".yaml", ".txt"}
    ]


def links_in(page: str) -> list[str]:
    """Targets of links and images that are files of this project."""
    targets = [inline or image for inline, image in _LINK.findall(_FENCE.sub("", page))]
    return [target for target in targets if not urlsplit(target).scheme and not target.startswith("#")]


def anchors_of(page: str) -> set[str]:
    """The anchors that the headings of a page get on GitHub."""
    headings = re.findall(r"^#{1,6}\s+(.*?)\s*#*$", _FENCE.sub("", page), re.MULTILINE)
    slugs: set[str] = set()
    for heading in headings:
        words = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        numbered = (f"{words}-{n}" for n in range(1, len(headings) + 1))
        slugs.add(words if words not in slugs else next(slug for slug in numbered if slug not in slugs))
    return slugs


def test_every_path_of_the_where_is_it_page_exists() -> None:
    if not (ROOT / WHERE_IS_IT).exists():
        pytest.skip(f"{WHERE_IS_IT} is not written yet")
    named = paths_named_in(text_of(WHERE_IS_IT))
    assert named, f"{WHERE_IS_IT} names no path"
    missing = [name for name in named if not (ROOT / name).exists()]
    assert not missing


@pytest.mark.parametrize("page", files_with(".md"), ids=str)
def test_every_link_to_a_file_of_the_project_leads_somewhere(page: Path) -> None:
    broken: list[str] = []
    for link in links_in(text_of(page)):
        target, _, anchor = unquote(link).partition("#")
        path = (ROOT / page.parent / target).resolve()
        if not path.exists() or (
            anchor and path.suffix == ".md" and anchor not in anchors_of(path.read_text(encoding="utf-8"))
        ):
            broken.append(link)
    assert not broken
