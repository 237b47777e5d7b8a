"""What must not stand in any file of the project."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
MADE = {"node_modules", "dist", "build", "htmlcov", "__pycache__"}
# In two parts, so that this file does not name them either.
REGISTRIES = [
    ".".join(parts).encode()
    for parts in [
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("yarnpkg", "com"),
        ("deb.debian", "org"),
    ]
]


def committed() -> Iterator[Path]:
    """The files that git knows or would take; without git, the files outside of folders that are made."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        paths = [path for path in ROOT.rglob("*") if not any(map(_made, path.relative_to(ROOT).parts[:-1]))]
    else:
        paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    return (path for path in paths if path.is_file())


def _made(folder: str) -> bool:
    return folder in MADE or (folder.startswith(".") and folder != ".ci")


def test_no_file_names_a_package_registry() -> None:
    contents = {str(path.relative_to(ROOT)): path.read_bytes() for path in committed()}
    assert {"pyproject.toml", ".ci/run", "requirements/dev.txt"} <= contents.keys()
    assert [name for name, content in contents.items() if any(registry in content for registry in REGISTRIES)] == []
