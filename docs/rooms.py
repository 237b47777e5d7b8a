"""The rooms in docs/architecture.md: their order from the import-linter contract, their contents from docstrings."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "gateway"


def drawing() -> str:
    """Return the layers of the contract `rooms`, from the top; rooms on one line do not import each other."""
    lines = [" " * 4 + "   ".join(layer) for layer in _layers()]
    return "\n      |\n".join(lines) + "\n"


def table() -> str:
    """Return the rooms and their folders, each with the first sentence of its docstring."""
    rows = [f"| {_name(module)} | {_first_sentence(module)} |" for module in _modules()]
    return "\n".join(["| room | contents |", "|---|---|", *rows]) + "\n"


def _layers() -> Iterator[list[str]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    layers = next(contract["layers"] for contract in settings["contracts"] if contract["id"] == "rooms")
    for layer in layers:
        names = [name.strip(" ()") for name in layer.split("|")]
        if not names[0].startswith("_"):
            yield names


def _modules() -> Iterator[Path]:
    """Yield the modules whose docstrings describe the rooms and the packages in them."""
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
