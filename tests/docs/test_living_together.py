"""The table on docs/living-together.md is true to pyproject.toml: what it says clashes, does. Needs no network."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "living-together.md").read_text("utf-8")
OURS = {
    (asked := Requirement(line)).name: asked.specifier
    for line in tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
}
TABLE = PAGE.partition("clashes:begin")[2].partition("clashes:end")[0]
ROWS = re.findall(r"^\| `([\w-]+)` (\S+) \| (.+?) \| `([\w-]+)` (\S+) \|$", TABLE, re.MULTILINE)

# What the packages that do live beside the gateway ask for, from the metadata of their newest versions.
BESIDE = {
    "litellm[proxy] 1.106.2": ["mcp<3,>=2.2.0", "rich<14.0,>=13.9.4", "starlette<2.0,>=1.0.1", "tomlkit<1.0,>=0.13.3"],
    "open-webui 0.12.4": ["mcp==2.3.0", "httpx2==2.16.0", "pillow==13.0.0", "pydantic==2.13.4", "uvicorn==0.54.0"],
}


def meet(one: SpecifierSet, other: SpecifierSet) -> bool:
    """Whether some version is in both: if so, one of those that they name, or one just beside it."""
    named = [Version(each.version) for each in [*one, *other]]
    near = [version for each in named for version in (each, Version(f"{each.public}.post1"))]
    return any(version in one and version in other for version in near)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_the_page_says_cannot_live_together_cannot(row: tuple[str, ...]) -> None:
    asked = [Requirement(line) for line in re.findall(r"`([^`]+)`", row[2])]
    assert any(not meet(OURS[each.name], each.specifier) for each in asked)
    assert Version(row[4]) < Version(row[1]), "an installer goes back to an older version"


def test_the_page_has_the_packages_that_people_ask_about() -> None:
    assert [row[0] for row in ROWS] == ["crewai", "strands-agents", "data-designer-engine", "langchain-mcp-adapters"]
    assert f"`mcp{','.join(sorted(map(str, OURS['mcp']), reverse=True))}`" in PAGE


@pytest.mark.parametrize("package", BESIDE)
def test_what_the_page_says_lives_together_does(package: str) -> None:
    assert f"`{package.split()[0]}`" in PAGE
    for asked in map(Requirement, BESIDE[package]):
        assert meet(OURS[asked.name], asked.specifier), f"{asked} and {OURS[asked.name]}"
