"""What the documentation says is so: generated pages are in step, links lead somewhere, snippets and commands exist."""

import importlib.util
import json
import re
import tomllib
from pathlib import Path

import pytest
import typer

from gateway.cli.app import app
from gateway.config.schema import Settings

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *ROOT.glob("examples/**/*.md"),
]


def test_generated_pages_are_in_step_with_their_data() -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    stale = [path.name for path, text in generate.pages().items() if path.read_text("utf-8") != text]
    assert not stale, "run: .venv/bin/python docs/generate.py"


ALL_PAGES = sorted({*PAGES, *(ROOT / "docs").rglob("*.md")})


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_snippets_of_configuration_are_valid(page: Path) -> None:
    text = page.read_text("utf-8")
    for snippet in re.findall(r"```toml\n(.*?)```", text, re.DOTALL):
        Settings.model_validate(tomllib.loads(snippet))
    for snippet in re.findall(r"```json\n(.*?)```", text, re.DOTALL):
        json.loads(snippet)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_their_options_exist(page: Path) -> None:
    commands = getattr(typer.main.get_command(app), "commands", {})
    for line in re.findall(r"(?:^|`|\$ |    )mcp-gateway ([a-z][^`\n#]*)", page.read_text("utf-8"), re.MULTILINE):
        words = line.split("--", 1)[0].split() if " -- " in line else line.split()
        assert words[0] in commands, f"{page.name}: mcp-gateway {line}"
        command = commands[words[0]]
        inner = getattr(command, "commands", {})
        if inner and len(words) > 1 and words[1] in inner:
            command = inner[words[1]]
        known = {option for parameter in command.params for option in parameter.opts}
        used = {word.split("=")[0] for word in words if word.startswith("--") and len(word) > 2}
        assert used <= known | {"--debug", "--help"}, f"{page.name}: mcp-gateway {line}"
