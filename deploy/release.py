"""Check that everything that names the version agrees with a tag, and print the changelog's section for it.

    python deploy/release.py v0.2.0 > notes.md

Exits with 1 and says what disagrees.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]


def versions(root: Path = ROOT) -> Iterator[tuple[str, str]]:
    """Yield each file that names the version, and the version that it names."""
    yield "gateway/_version.py", _only(root / "gateway/_version.py", r'__version__ = "(.+)"')
    server = json.loads((root / "server.json").read_text("utf-8"))
    yield "server.json", server["version"]
    for package in server["packages"]:
        yield f"server.json, {package['registryType']}", package["version"]
    yield "deploy/kubernetes/kustomization.yaml", _only(root / "deploy/kubernetes/kustomization.yaml", r"newTag: v(.+)")
    yield "deploy/homebrew/mcp-gateway.rb", _only(root / "deploy/homebrew/mcp-gateway.rb", r'tag: +"v(.+?)"')


def notes(version: str, root: Path = ROOT) -> str:
    """Return the changelog's section for a version; empty if there is none."""
    sections = re.split(r"^## (.+)\n", (root / "CHANGELOG.md").read_text("utf-8"), flags=re.MULTILINE)[1:]
    found = {heading.split()[0]: text.strip() for heading, text in zip(sections[::2], sections[1::2], strict=True)}
    return found.get(version, "")


def _only(path: Path, pattern: str) -> str:
    found = re.findall(pattern, path.read_text("utf-8"))
    return found[0] if len(found) == 1 else f"(found {len(found)} times)"


def main(tag: str) -> int:
    """Check, and print the notes. Return the exit code."""
    version = tag.removeprefix("v")
    wrong = [f"{place} says {found}" for place, found in versions() if found != version]
    text = notes(version)
    if not text:
        wrong.append(f"CHANGELOG.md has no section `## {version}`")
    for line in wrong:
        print(f"{tag}: {line}", file=sys.stderr)
    if wrong:
        return 1
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
