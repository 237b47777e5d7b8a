"""What the documentation says is so: generated pages are in step, links lead somewhere, snippets and commands exist."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer

from gateway._version import __version__
from gateway.cli.app import application
from gateway.config.builtin_profiles import builtin_profiles
from gateway.config.schema import Settings
from gateway.hosts.config_files.hosts import HOSTS

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "access").glob("*.md")),
    *ROOT.glob("examples/**/*.md"),
]


def test_generated_pages_are_in_step_with_their_data() -> None:
    """In a process of its own: what other tests have imported must not count."""
    done = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


ALL_PAGES = sorted({*PAGES, *(ROOT / "docs").rglob("*.md")})


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def _anchors(page: Path) -> set[str]:
    """Return the anchors of a page: those of its headings, as GitHub makes them, and explicit ones."""
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", re.sub(r"\[([^]]*)]\([^)]*\)", r"\1", text), re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r'<a id="([^"]+)"', text))


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_anchors_of_links_exist(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://)([^)#]*)#([^)]+)\)", page.read_text("utf-8"))
    pages = [(page.parent / link if link else page, anchor) for link, anchor in links]
    assert [f"{path}#{anchor}" for path, anchor in pages if anchor not in _anchors(path)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_snippets_of_configuration_are_valid(page: Path) -> None:
    text = page.read_text("utf-8")
    for snippet in re.findall(r"```toml\n(.*?)```", text, re.DOTALL):
        Settings.model_validate(tomllib.loads(snippet))
    for snippet in re.findall(r"```json\n(.*?)```", text, re.DOTALL):
        json.loads(snippet)


def test_settings_in_tables_of_the_readme_name_their_section_and_are_valid() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    named = [code for row in rows for code in re.findall(r"`([^`]*)`", row) if " = " in code]
    assert named
    for code in named:
        assert code.startswith("["), f"{code}: in which section?"
        document = tomllib.loads(code.replace("] ", "]\n", 1))
        for upstream in document.get("upstreams", {}).values():
            upstream["command"] = "a-server"
        Settings.model_validate(document)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_their_options_exist(page: Path) -> None:
    commands = getattr(typer.main.get_command(application()), "commands", {})
    for line in re.findall(r"(?:^|`|\$ |    )mcp-gateway ([a-z][^`\n#]*)", page.read_text("utf-8"), re.MULTILINE):
        words = line.split("--", 1)[0].split() if " -- " in line else line.split()
        assert words[0] in commands, f"{page.name}: mcp-gateway {line}"
        command = commands[words[0]]
        inner = getattr(command, "commands", {})
        if inner and len(words) > 1 and words[1] in inner:
            command = inner[words[1]]
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        used = {word.split("=")[0] for word in words if word.startswith("--") and len(word) > 2}
        assert used <= known | {"--debug", "--help"}, f"{page.name}: mcp-gateway {line}"


def test_every_page_is_found_from_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    folders = {name: f"{name}/README.md" for name in ("decisions", "hosts", "models")}
    linked = set(re.findall(r"\]\((?!https?://)([^)#]+)\)", index.read_text("utf-8")))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")} - {"README.md"}
    below = {page for page in pages if page.split("/")[0] in folders}
    assert (pages - below) | set(folders.values()) <= linked
    for folder in folders:
        inner = {page.split("/")[1] for page in below if page.startswith(f"{folder}/")} - {"README.md"}
        listed = re.findall(r"\]\(([^)#]+)[)#]", (ROOT / "docs" / folder / "README.md").read_text("utf-8"))
        assert inner <= set(listed)


def test_the_index_has_six_groups_and_each_page_one_place() -> None:
    _, *groups = re.split(r"^## ", (ROOT / "docs" / "README.md").read_text("utf-8"), flags=re.MULTILINE)
    assert [group.split("\n")[0] for group in groups] == ["Start", "Run", "Hosts", "Content", "Programs", "Reference"]
    pages = [page for group in groups for page in set(re.findall(r"\]\((?!https?://)([^)#]+\.md)\)", group))]
    assert [page for page in sorted(set(pages)) if pages.count(page) > 1] == ["hosts/README.md"]  # all of Hosts


README = (ROOT / "README.md").read_text("utf-8")


def test_the_readme_begins_with_what_works_in_a_clone_and_names_files_by_the_version_of_now() -> None:
    first = re.findall(r"^    (\S.*)$", README, re.MULTILINE)[:2]
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    make, name = first[0].split()[:2]
    assert (make, name in targets, first[1].split("  ")[0]) == ("make", True, "source .venv/bin/activate")
    assert set(re.findall(r"gateway-(\d[\w.]*)[-.](?:py3|mcpb)", README.replace("_", "-"))) == {__version__}


def test_the_picture_of_the_report_is_small() -> None:
    (picture,) = re.findall(r"!\[[^\]]{40,}\]\((docs/[^)]+)\)", README)
    assert (ROOT / picture).stat().st_size < 300_000


def test_the_readme_has_the_hosts_that_can_be_registered() -> None:
    table = README.split("<!-- hosts:begin")[1].split("<!-- hosts:end")[0]
    profiles = {host.profile or host.name for host in HOSTS.values()} & set(builtin_profiles())
    assert set(re.findall(r"evidence\.md#([a-z-]+)\)", table)) == {*profiles, "default"}
    assert all(f"`{name}`" in README for name in HOSTS)


def test_contributors_are_told_of_every_room() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["id"] == "rooms")
    named = [name.strip(" ()") for layer in layers for name in layer.split("|")]
    rooms = [name for name in named if (ROOT / "gateway" / name).is_dir()]
    table = (ROOT / "CONTRIBUTING.md").read_text("utf-8").split("## The rooms")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(\w+)/` \|", table, re.MULTILINE) == rooms


def test_programs_that_take_options_of_their_own_are_separated_from_ours() -> None:
    for page in ALL_PAGES:
        for line in re.findall(r"npx [^`\n]*inspector[^`\n]*mcp-gateway[^`\n]*", page.read_text("utf-8")):
            assert " -- mcp-gateway serve" in line, f"{page.name}: {line}"
