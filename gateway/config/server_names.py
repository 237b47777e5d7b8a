"""Propose a name for a server after its command line: after the package or script, not after what runs it.

`npx -y @modelcontextprotocol/server-memory` is `memory`, `python tools/weather.py` is `weather`. Pure; a proposal may
be invalid as a name or taken, which `gateway.config.foreign.upstream_name` mends.
"""

import ntpath
import re
from collections.abc import Sequence

_PROGRAM_ENDINGS = frozenset({".exe", ".cmd", ".bat", ".sh"})
_SCRIPT_ENDINGS = frozenset({".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".rb", ".sh", ".php", ".jar", ".dll"})

_OF_CONTAINERS = frozenset(
    {"-e", "--env", "--env-file", "-v", "--volume", "--mount", "--name", "--network", "--net", "-p", "--publish"}
    | {"-u", "--user", "-w", "--workdir", "--entrypoint", "--platform", "-l", "--label", "--cpus", "-m", "--memory"}
    | {"--pull", "--gpus", "--add-host", "--device", "--tmpfs", "--dns", "-h", "--hostname"}
)
_OF_UV = frozenset(
    {"--from", "--with", "--with-editable", "--with-requirements", "--python", "-p", "--directory", "--project"}
    | {"--index", "--index-url", "--default-index", "--extra-index-url", "--extra", "--group", "--env-file"}
)
_OF_NODE = frozenset(
    {"-p", "--package", "--registry", "-r", "--require", "--import", "--loader", "-C", "--prefix", "--config"}
)
_OF_PYTHON = frozenset({"-W", "-X"})
_RUNNERS = {
    **dict.fromkeys(("npx", "pnpx", "bunx", "npm", "pnpm", "yarn", "bun", "node", "deno", "tsx", "ts-node"), _OF_NODE),
    **dict.fromkeys(("uvx", "uv", "pipx"), _OF_UV),
    **dict.fromkeys(("docker", "podman", "nerdctl"), _OF_CONTAINERS),
    **dict.fromkeys(("python", "pythonw", "py"), _OF_PYTHON),
    **dict.fromkeys(("ruby", "php", "perl", "java", "dotnet", "go", "dnx", "bash", "sh", "zsh"), frozenset[str]()),
}
"""Programs that run a server which one of their arguments names, and their options that have a value."""

_COMMANDS = frozenset({"exec", "x", "dlx", "run", "tool", "container", "compose", "--"})
_CODE = frozenset({"-c", "-e", "--eval"})
"""Options of interpreters that are followed by code."""
_UNTELLING = frozenset({"index", "main", "__main__", "cli", "dist", "build", "src", "bin", "lib", "out", ".", ".."})
"""Names of files and folders that do not tell what a server is: the folder above may."""


def name_for_command(command: str, args: Sequence[str]) -> str:
    """Return a name for the server that a command line starts."""
    base = ntpath.basename(command)  # understands both kinds of slashes
    program = _without_ending(base, _PROGRAM_ENDINGS | _SCRIPT_ENDINGS)
    runner = re.sub(r"[\d.]+$", "", program.lower())  # python3.12
    if runner not in _RUNNERS:
        return program
    with_value = _RUNNERS[runner]
    words = iter(args)
    for word in words:
        if word == "-m" and (with_value is _OF_PYTHON or (with_value is _OF_UV and runner == "uv")):
            return _package(_telling(next(words, program).split(".")))
        if word in _CODE and with_value is not _OF_CONTAINERS:
            return program
        if word in with_value:
            next(words, None)
        elif re.sub(r"[\d.]+$", "", word.lower()) in ("python", "node") and runner == "uv":
            continue  # uv run python server.py
        elif word not in _COMMANDS and not word.startswith("-"):
            return _named(word, is_image=with_value is _OF_CONTAINERS) or program
    return program


def _named(word: str, *, is_image: bool) -> str:
    """Return a name after a script, package or image."""
    if is_image:
        return _package(_before(word.rpartition("/")[2], ":@"))
    parts = re.split(r"[/\\]", word)
    is_script = any(word.lower().endswith(ending) for ending in _SCRIPT_ENDINGS)
    if is_script or word.startswith((".", "/", "~")) or "\\" in word:
        return _telling([*parts[:-1], _without_ending(parts[-1], _SCRIPT_ENDINGS)])
    if "://" in word or len(parts) > 2:  # git+https://github.com/acme/tool.git@v1, github.com/acme/tool
        return _package(_before(parts[-1], "@#?").removesuffix(".git"))
    scope = parts[0] if word.startswith("@") and len(parts) > 1 else ""
    package = _package(_before(parts[-1], "@[=<>~!:"))
    return scope.removeprefix("@") if scope and package.lower() in ("mcp", "server", "mcp-server", "") else package


def _package(name: str) -> str:
    """Return the name of a package without what so many names of servers have: `mcp-server-time` is `time`."""
    short = re.sub(r"^(?:mcp[-_])?(?:server[-_])?", "", name, flags=re.IGNORECASE)
    short = re.sub(r"[-_](?:mcp|server|mcp[-_]server|server[-_]mcp)$", "", short, flags=re.IGNORECASE)
    return name if short.lower() in ("", "mcp", "server") else short


def _telling(parts: Sequence[str]) -> str:
    """Return the last part of a path or module that tells what it is."""
    telling = [part for part in parts if part and part.lower() not in _UNTELLING]
    return telling[-1] if telling else (parts[-1] if parts else "")


def _without_ending(name: str, endings: frozenset[str]) -> str:
    stem, dot, ending = name.rpartition(".")
    return stem if stem and f"{dot}{ending}".lower() in endings else name


def _before(text: str, marks: str) -> str:
    """Return the text before the first of these characters."""
    places = [place for mark in marks if (place := text.find(mark, 1)) > 0]
    return text[: min(places)] if places else text
