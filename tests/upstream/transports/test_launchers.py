"""Which commands install before they start."""

import shlex

import pytest

from gateway.upstream.transports.launchers import launcher_of


@pytest.mark.parametrize(
    ("line", "name", "cache"),
    [
        ("npx -y @scope/server", "npx", "npm"),
        ("/opt/node/bin/npx @scope/server@latest --port 1", "npx", "npm"),
        (r"C:\Program|Files\nodejs\npx.cmd -y server", "npx", "npm"),
        ("npm exec --yes -- server", "npm exec", "npm"),
        ("npm -s x server", "npm x", "npm"),
        ("pnpm dlx server", "pnpm dlx", "pnpm"),
        ("yarn dlx server", "yarn dlx", "yarn"),
        ("bunx server", "bunx", "bun"),
        ("bun x server", "bun x", "bun"),
        ("uvx --from package server", "uvx", "uv"),
        ("uv tool run server", "uv tool run", "uv"),
        ("uv --directory /work run server.py", "uv run", "uv"),
        ("pipx run server", "pipx run", "pipx"),
        ("deno run -A npm:server", "deno run", "deno"),
        ("go run example.com/server@latest", "go run", "go"),
        ("dnx server", "dnx", "dotnet"),
        ("docker run -i --rm mcp/server", "docker run", "docker"),
        ("docker --context far run -i mcp/server", "docker run", "docker"),
        ("podman run -i mcp/server", "podman run", "podman"),
        ("cmd /c npx -y server", "npx", "npm"),
        ("CMD.EXE /d /s /c npx -y server", "npx", "npm"),
        ("sh -c 'cd /work && exec npx -y server'", "npx", "npm"),
        ("bash -lc 'TOKEN=x uvx server'", "uvx", "uv"),
        ("env -i TOKEN=x npx server", "npx", "npm"),
        ("/usr/bin/env -S npx -y server", "npx", "npm"),
        ("sudo -u nobody docker run -i server", "docker run", "docker"),
        ("nice -n 5 sh -c 'npx server'", "npx", "npm"),
        ("mise exec -- npx -y server", "npx", "npm"),
        ("op run --env-file=.env -- uvx server", "uvx", "uv"),
    ],
)
def test_a_launcher_is_known_wherever_it_stands(line: str, name: str, cache: str) -> None:
    launcher = launcher_of(*split(line))
    assert launcher is not None
    assert (launcher.name, launcher.cache) == (name, cache)


@pytest.mark.parametrize(
    "line",
    [
        "node server.js",
        "python -m server",
        "python npx",
        "server run",
        "npm start",
        "uv sync",
        "docker exec -i box server",
        "docker logs run-it",
        "docker exec -i box sh -c run",
        "sh -c 'node server.js'",
        "sh run.sh",
        "env TOKEN=x node server.js",
        "server -- node x",
    ],
)
def test_what_starts_at_once_is_none(line: str) -> None:
    assert launcher_of(*split(line)) is None


def test_what_cannot_be_read_is_none() -> None:
    assert launcher_of(None, ()) is None
    assert launcher_of("", ("npx",)) is None
    assert launcher_of("sh", ("-c", "npx 'without an end")) is None
    assert launcher_of("env", ("env",) * 1_000) is None


@pytest.mark.parametrize(
    ("line", "alone"),
    [
        ("npx x", True),
        ("env A=b npx x", True),
        ("sh -c 'npx x'", False),
        ("cmd /c npx x", False),
        ("docker run x", False),
    ],
)
def test_only_one_that_begins_alone_shows_by_a_child_that_it_has_installed(line: str, alone: bool) -> None:
    launcher = launcher_of(*split(line))
    assert launcher is not None
    assert launcher.starts_child is alone


def split(line: str) -> tuple[str, tuple[str, ...]]:
    """A line as a shell would split it; `|` stands for a blank, and backslashes are kept."""
    words = [word.replace("|", " ") for word in shlex.split(line.replace("\\", "\\\\"))]
    return words[0], tuple(words[1:])
