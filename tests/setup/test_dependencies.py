"""The packages that pyproject.toml asks for are the ones that are used."""

import ast
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CLIENTS = ROOT / "examples" / "agents"
"""Programs that bring the clients of model APIs: the gateway itself needs none of them."""

PARTS = {"mcp-types": "mcp", "pydantic-core": "pydantic", "pydantic-monty-client": "pydantic-monty"}
"""Distributions that another one pins exactly: asking for that one is enough."""

CHOSEN = {"uvloop", "httptools"}
"""What anyio and uvicorn import for the gateway, if it is there."""


OF_EXTRAS = {"psycopg", "pydantic-monty", "redis"}
"""What is imported where the configuration asks for it, and is asked for by an extra."""


def imported(*folders: str) -> Iterator[str]:
    """The top-level names of what is imported anywhere in the folders, ours and the standard library's left out."""
    for path in [path for folder in folders for path in (ROOT / folder).rglob("*.py") if CLIENTS not in path.parents]:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
                yield node.module.partition(".")[0]


def test_what_is_imported_is_asked_for_and_what_is_asked_for_is_imported() -> None:
    names = set(imported("gateway", "examples")) - sys.stdlib_module_names - {"gateway", "examples"}
    origins = packages_distributions()
    asked = {canonicalize_name(Requirement(line).name) for line in PROJECT["dependencies"]}
    # Several distributions may share a name to import (opentelemetry): what is asked for is what is meant.
    homes = {name: [canonicalize_name(origin) for origin in origins[name]] for name in names}
    used = {next((home for home in found if home in asked), found[0]) for found in homes.values()}
    assert {PARTS.get(name, name) for name in used} | CHOSEN == asked | OF_EXTRAS
    assert {
        canonicalize_name(Requirement(line).name)
        for extra in ("code", "postgres", "redis")
        for line in PROJECT["optional-dependencies"][extra]
    } == OF_EXTRAS
