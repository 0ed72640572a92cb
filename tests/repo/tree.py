"""What the repository's own tests look at: its files, as git would list them."""

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_NOT_OURS = {".git", "__pycache__", ".aws-sam", ".build", ".durable", "build", "dist", "node_modules"}


@cache
def project_files() -> tuple[Path, ...]:
    """Every file that is or could be committed, relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0:
        found = (Path(name) for name in listed.stdout.split("\0") if name)
    else:  # an unpacked archive has no git
        found = (path.relative_to(ROOT) for path in ROOT.rglob("*") if not _is_left_over(path.relative_to(ROOT)))
    return tuple(sorted(path for path in found if (ROOT / path).is_file()))


def files_with(suffix: str, *folders: str) -> list[Path]:
    """Files by suffix, of the whole project or of some top folders."""
    return [path for path in project_files() if path.suffix == suffix and (not folders or path.parts[0] in folders)]


def text_of(path: Path) -> str:
    """The text of a project file."""
    return (ROOT / path).read_text(encoding="utf-8")


def _is_left_over(path: Path) -> bool:
    return any(part in _NOT_OURS or part.startswith(".venv") or part.endswith("_cache") for part in path.parts)


@dataclass(frozen=True, slots=True)
class Function:
    """A function as it stands in a file, decorators and docstring not counted."""

    path: Path
    name: str
    line: int
    lines: int

    @property
    def place(self) -> str:
        """How the exceptions table names it."""
        return f"{self.path.as_posix()}::{self.name}"


def functions_of(path: Path) -> Iterator[Function]:
    """Every function and method of a file, the nested ones too."""
    yield from _functions_in(ast.parse(text_of(path)), path, "")


def _functions_in(node: ast.AST, path: Path, prefix: str) -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield Function(path, prefix + child.name, child.lineno, _length(child))
                yield from _functions_in(child, path, f"{prefix}{child.name}.")
            case ast.ClassDef():
                yield from _functions_in(child, path, f"{prefix}{child.name}.")
            case _:
                yield from _functions_in(child, path, prefix)


def _length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    end = function.end_lineno or function.lineno
    return end - function.lineno + 1 - _docstring_lines(function)


def _docstring_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    match function.body[0]:
        case ast.Expr(value=ast.Constant(value=str()), lineno=first, end_lineno=int(last)):
            return last - first + 1
        case _:
            return 0
