"""Write the `.mcpb` bundle for Claude Desktop: `python bundle/mcpb.py dist`.

A bundle is a zip with a manifest.json (the specification: MANIFEST.md of modelcontextprotocol/mcpb; its version 0.4 has
the server type `uv`). The host runs uv, which fetches a Python and the wheels that fit the user's system. A bundle of
type `python` would have to carry the compiled packages of every system.
"""

import argparse
import json
import re
import sys
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gateway

ROOT = Path(__file__).resolve().parents[1]

# The earliest time that a zip can say. With it the same files give the same bundle, byte for byte.
EPOCH = (1980, 1, 1, 0, 0, 0)

PINNED = re.compile(r"^([A-Za-z0-9._-]+==[^\\\n]+?) *\\?$", re.MULTILINE)


def build(folder: Path) -> Path:
    """Write the bundle into the folder, which is made if it is missing; returns its path."""
    described = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contents = {
        "manifest.json": json.dumps(manifest(described["project"]), indent=2, ensure_ascii=False).encode() + b"\n",
        "pyproject.toml": pyproject(described).encode(),
        "LICENSE": (ROOT / "LICENSE").read_bytes(),
    } | package(described)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"mcp-gateway-{gateway.__version__}.mcpb"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in sorted(contents.items()):
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.create_system = 3  # Unix, wherever it is built
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return path


def manifest(project: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest: what stands beside this file, and what pyproject.toml and the package say of themselves."""
    written = json.loads((ROOT / "bundle" / "manifest.json").read_text("utf-8"))
    return written | {
        "version": gateway.__version__,
        "description": project["description"],
        "author": {"name": project["authors"][0]["name"]},
        "license": project["license"],
        "keywords": project["keywords"],
        "compatibility": written["compatibility"] | {"runtimes": {"python": project["requires-python"]}},
    }


def package(described: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of the package `gateway` by their names, as they are in the wheel."""
    paths = (path for path in (ROOT / "gateway").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    forced: Mapping[str, str] = described["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    return {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in paths} | {
        name: (ROOT / source).read_bytes() for source, name in forced.items() if name.startswith("gateway/")
    }


def pyproject(described: Mapping[str, Any]) -> str:
    """What uv reads in the bundle: the project with its bounds, held at the locked versions."""
    project = described["project"]
    lines = [
        "[build-system]",
        f"requires = {_array(described['build-system']['requires'])}",
        f"build-backend = {_string(described['build-system']['build-backend'])}",
        "",
        "[project]",
        f"name = {_string(project['name'])}",
        f"version = {_string(gateway.__version__)}",
        f"requires-python = {_string(project['requires-python'])}",
        f"dependencies = {_array(project['dependencies'])}",
        "",
        "[project.scripts]",
        *(f"{name} = {_string(function)}" for name, function in project["scripts"].items()),
        "",
        "[tool.hatch.build.targets.wheel]",
        'packages = ["gateway"]',
        "",
        "[tool.uv]",
        f"constraint-dependencies = {_array(_locked('runtime'))}",
        f"build-constraint-dependencies = {_array(_locked('build'))}",
    ]
    return "\n".join(lines) + "\n"


def _locked(name: str) -> list[str]:
    """The requirements of a lock file, with their markers and without their hashes, for which uv has no place here."""
    return PINNED.findall((ROOT / "requirements" / f"{name}.txt").read_text("utf-8"))


def _array(values: Sequence[str]) -> str:
    return "[\n" + "".join(f"    {_string(value)},\n" for value in values) + "]"


def _string(value: str) -> str:
    # A JSON string in ASCII is a TOML string too.
    return json.dumps(value)


def main() -> None:
    """Write the bundle into the folder that the command line names."""
    parser = argparse.ArgumentParser(description="Write the .mcpb bundle for Claude Desktop.")
    parser.add_argument("folder", type=Path, help="where the bundle goes")
    path = build(parser.parse_args().folder)
    sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
