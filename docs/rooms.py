"""The rooms in docs/architecture.md: their order from the import-linter contract, what is in each from its package."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "gateway"


def drawing() -> str:
    """The layers of the contract `rooms` from the top; what stands in one line does not import each other."""
    lines = [" " * 4 + "   ".join(layer) for layer in _layers()]
    return "\n      |\n".join(lines) + "\n"


def table() -> str:
    """The rooms and the folders in them, each with the first sentence of its module."""
    rows = [f"| {_name(module)} | {_first_sentence(module)} |" for module in _modules()]
    return "\n".join(["| room | what is in it |", "|---|---|", *rows]) + "\n"


def _layers() -> Iterator[list[str]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    layers = next(contract["layers"] for contract in settings["contracts"] if contract["id"] == "rooms")
    for layer in layers:
        names = [name.strip(" ()") for name in layer.split("|")]
        if not names[0].startswith("_"):
            yield names


def _modules() -> Iterator[Path]:
    """The module that says what a room is: its package's, and those of the packages inside; or the one that it is."""
    for room in (PACKAGE / name for layer in _layers() for name in layer):
        if room.is_dir():
            yield room / "__init__.py"
            yield from sorted(room.glob("*/__init__.py"))
        else:
            yield room.with_suffix(".py")


def _name(module: Path) -> str:
    parts = module.relative_to(PACKAGE).parts
    if parts[-1] != "__init__.py":
        return f"**`{parts[0]}`**"
    return f"**`{parts[0]}/`**" if len(parts) == 2 else f"`{'/'.join(parts[:-1])}/`"


def _first_sentence(module: Path) -> str:
    words = ast.get_docstring(ast.parse(module.read_text("utf-8"))) or ""
    return " ".join(words.split("\n\n")[0].split()).split(". ")[0].rstrip(".:")
