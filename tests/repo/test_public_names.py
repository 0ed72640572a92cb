"""The public door of the library opens to the names in public_names.txt and to no others."""

import durable
from tests.repo.tree import ROOT

PINNED = ROOT / "tests/repo/public_names.txt"


def test_the_library_exports_exactly_the_pinned_names() -> None:
    pinned = PINNED.read_text(encoding="utf-8").split()
    exported = sorted(durable.__all__)
    assert exported == pinned, (
        "durable.__all__ changed. If that is meant, write the sorted names to tests/repo/public_names.txt and tell "
        f"users in CHANGELOG.md.\nnew: {sorted(set(exported) - set(pinned))}\ngone: {sorted(set(pinned) - set(exported))}"
    )


def test_every_exported_name_exists() -> None:
    missing = [name for name in durable.__all__ if not hasattr(durable, name)]
    assert not missing
