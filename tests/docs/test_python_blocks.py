"""The blocks of Python on the pages say where their names come from, and what they import exists."""

import ast
import builtins
import importlib.util
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page
    for page in (
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "examples").rglob("*.md"),
        ROOT / "lab" / "README.md",
    )
    if page.name != "CHANGELOG.md"
)
GIVEN = {
    "docs/authors.md": {"week_as_png"},
    "docs/code-mode.md": {"browser__screenshot", "browser__compare", "show"},  # what the sandbox gives
    "docs/provider-files.md": {"calls"},
}
"""The names that a page's text explains, or that are the reader's own."""
_FENCED = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:^    [^\n]*\n(?:\n(?=    ))?)+", re.MULTILINE)


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _code(page: str) -> str:
    """The blocks of a page as one program: a block may use what an earlier one has imported or defined."""
    return "\n".join(textwrap.dedent(code) for _, kind, code in _FENCED.findall(page) if kind in ("python", "py"))


def _unfenced(page: str) -> Iterator[str]:
    """The indented blocks of a page that are Python, and would escape this test: they construct or import something."""
    for block in _INDENTED.findall(_FENCED.sub("", page)):
        try:
            parsed = ast.parse(textwrap.dedent(block))
        except SyntaxError:
            continue
        nodes = [node for statement in parsed.body for node in ast.walk(statement)]
        if any(isinstance(node, ast.Import | ast.ImportFrom) for node in nodes) or any(
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id[:1].isupper()
            for node in nodes
        ):
            yield block


def _undefined(code: str) -> set[str]:
    """The names that nothing in the code defines."""
    checked = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "--select=F821", "--output-format=concise", "-"],
        input=code,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert checked.returncode in (0, 1), checked.stderr
    return {name for name in re.findall(r"Undefined name `(\w+)`", checked.stdout) if not hasattr(builtins, name)}


@pytest.mark.parametrize("page", [page for page in PAGES if _code(page.read_text("utf-8"))], ids=_name)
def test_every_name_is_imported_or_defined(page: Path) -> None:
    assert _undefined(_code(page.read_text("utf-8"))) == GIVEN.get(_name(page), set())


@pytest.mark.parametrize("page", [page for page in PAGES if _code(page.read_text("utf-8"))], ids=_name)
def test_every_import_of_a_package_that_is_here_works(page: Path) -> None:
    for node in ast.walk(ast.parse(_code(page.read_text("utf-8")))):
        modules = [name.name for name in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if modules and all(importlib.util.find_spec(module.partition(".")[0]) for module in modules):
            try:
                exec(ast.unparse(node), {})
            except ImportError as error:
                if "is not installed" not in str(error):  # of fastmcp, only the client may be
                    raise


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_python_stands_in_a_block_that_says_so(page: Path) -> None:
    assert list(_unfenced(page.read_text("utf-8"))) == []


def test_an_indented_block_and_a_missing_import_are_found() -> None:
    assert list(_unfenced("Thus:\n\n    Scripted([Reply(text='Done.')])\n\nEnd\n"))
    assert _undefined("Scripted([])\nprint(1)") == {"Scripted"}
