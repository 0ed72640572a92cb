"""An error that exists is documented and raised; one that nobody raises is a promise nobody keeps."""

import ast
import re
from pathlib import Path

import pytest

from tests.repo.tree import ROOT, files_with, text_of

ERRORS = Path("durable/errors.py")
PAGE = Path("docs/errors.md")

# Step code of users raises these, so the library handles them instead.
RAISED_BY_USERS = {"NonRetryableError", "RetryAfter", "RollbackError"}


def error_classes() -> dict[str, list[str]]:
    """Each class of errors.py with the names of its bases."""
    classes = [node for node in ast.parse(text_of(ERRORS)).body if isinstance(node, ast.ClassDef)]
    families = {node.name: [ast.unparse(base).split(".")[-1] for base in node.bases] for node in classes}
    return {name: bases for name, bases in families.items() if _is_error(name, families)}


def _is_error(name: str, families: dict[str, list[str]]) -> bool:
    if name not in families:
        return name.endswith(("Error", "Exception", "Warning", "CancelledError"))
    return any(_is_error(base, families) for base in families[name])


def leaves() -> list[str]:
    """Classes without a subclass: those that are raised themselves."""
    classes = error_classes()
    parents = {base for bases in classes.values() for base in bases}
    return [name for name in classes if name not in parents]


def names_built_in(path: Path) -> set[str]:
    """Names that a file calls, raises, or builds through a classmethod, as in `Conflict.of(run)`."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text_of(path))):
        match node:
            case ast.Call(func=ast.Name(id="_failed"), args=[ast.Name(id=name), *_]):
                names.add(name)
            case ast.Call(func=ast.Name(id=name)) | ast.Raise(exc=ast.Name(id=name)):
                names.add(name)
            case ast.Call(func=ast.Attribute(attr=attribute, value=value)):
                names.add(attribute)
                if isinstance(value, ast.Name):
                    names.add(value.id)
            case ast.Raise(exc=ast.Attribute(attr=attribute)):
                names.add(attribute)
            case _:
                pass
    return names


def names_handled_in(path: Path) -> set[str]:
    """Names that a file catches, asks for with isinstance, or matches."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text_of(path))):
        match node:
            case ast.ExceptHandler(type=ast.expr() as asked) | ast.MatchClass(cls=asked):
                names |= _names_in(asked)
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, asked]):
                names |= _names_in(asked)
            case _:
                pass
    return names


def _names_in(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def library_files() -> list[Path]:
    return [path for path in files_with(".py", "durable", "handlers") if path != ERRORS]


def test_every_error_is_raised_somewhere() -> None:
    built = set[str]().union(*(names_built_in(path) for path in library_files()))
    never = [name for name in leaves() if name not in built | RAISED_BY_USERS]
    assert not never, f"Raise these somewhere in durable/ or handlers/, or remove them from {ERRORS}."


def test_every_error_that_users_raise_is_handled() -> None:
    handled = set[str]().union(*(names_handled_in(path) for path in library_files()))
    assert handled >= RAISED_BY_USERS


def test_every_error_is_documented() -> None:
    if not (ROOT / PAGE).exists():
        pytest.skip(f"{PAGE} is not written yet")
    words = set(re.findall(r"\w+", text_of(PAGE)))
    missing = [name for name in error_classes() if name not in words]
    assert not missing, f"Tell in {PAGE} what each means and what to do."


def test_the_errors_page_names_no_error_that_is_gone() -> None:
    if not (ROOT / PAGE).exists():
        pytest.skip(f"{PAGE} is not written yet")
    headings = re.findall(r"^#{2,6}\s+`(\w+)`", text_of(PAGE), re.MULTILINE)
    gone = [name for name in headings if name not in error_classes()]
    assert not gone
