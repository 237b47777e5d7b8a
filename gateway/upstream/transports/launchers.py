"""Recognize commands that may download a server before they start it: `npx`, `uvx`, `docker run` and the like.

Pure: only the command and its arguments count, also behind a shell, `env` or another wrapper.
"""

import ntpath
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Launcher:
    """A program that installs a server before it starts it, and the cache that it fills."""

    name: str
    """The name as a user writes it: `npx`, `uv run`."""
    cache: str
    """The name of the cache, which several programs may share."""
    starts_child: bool = True
    """Whether the server becomes a child of the launcher, so that a second process shows that it is installed."""


_ALONE: Mapping[str, str] = {
    "npx": "npm",
    "pnpx": "pnpm",
    "bunx": "bun",
    "uvx": "uv",
    "dnx": "dotnet",
}
"""Programs that are always launchers, and their caches."""

_COMMANDS: Mapping[str, tuple[str, frozenset[str]]] = {
    "npm": ("npm", frozenset({"exec", "x", "init", "create"})),
    "pnpm": ("pnpm", frozenset({"dlx"})),
    "yarn": ("yarn", frozenset({"dlx"})),
    "bun": ("bun", frozenset({"x"})),
    "uv": ("uv", frozenset({"run", "tool run", "x"})),
    "pipx": ("pipx", frozenset({"run"})),
    "deno": ("deno", frozenset({"run"})),
    "go": ("go", frozenset({"run"})),
    "docker": ("docker", frozenset({"run", "container run", "compose run"})),
    "podman": ("podman", frozenset({"run", "container run"})),
    "nerdctl": ("nerdctl", frozenset({"run"})),
}
"""Programs that are launchers with one of these commands, and their caches."""

_DETACHED = frozenset({"docker", "podman", "nerdctl"})
"""Launchers whose server is not their child, but is started by their service or replaces them."""

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish"})
_WINDOWS_SHELLS = frozenset({"cmd"})
_WRAPPERS = frozenset({"env", "nice", "nohup", "time", "sudo", "exec", "stdbuf", "setsid", "caffeinate"})
_ENDING = re.compile(r"\.(?:exe|cmd|bat|ps1)$", re.IGNORECASE)
_ASSIGNMENT = re.compile(r"^\w+=")
_SEPARATORS = frozenset({"&&", ";", "||", "|", "&"})
_DEEPEST = 5
"""How many nested wrappers are followed."""
_VALUES = 3
"""How many words between a wrapper and its command may be option values (`sudo -u nobody npx`)."""


def launcher_of(command: str | None, args: Sequence[str]) -> Launcher | None:
    """Return the launcher that a command is or runs; None for a command that starts the server directly."""
    return _found((command, *args), _DEEPEST) if command else None


def _found(words: Sequence[str], depth: int) -> Launcher | None:
    if not words or not depth:
        return None
    program = _ENDING.sub("", ntpath.basename(words[0].strip('"'))).lower()  # understands both kinds of slashes
    rest = words[1:]
    if program in _ALONE:
        return Launcher(program, _ALONE[program])
    if program in _COMMANDS and (launcher := _with_command(program, rest)) is not None:
        return launcher
    if program in _SHELLS:
        return _below(_in_script(_script_of_shell(rest), depth))
    if program in _WINDOWS_SHELLS:
        return _below(_found([word for word in rest if not re.match(r"^/\w", word)], depth - 1))
    if program in _WRAPPERS:
        return _behind_wrapper(rest, depth)
    if "--" in rest:  # `mise exec -- npx ...`, `op run -- uvx ...`
        return _below(_found(rest[rest.index("--") + 1 :], depth - 1))
    return None


def _below(launcher: Launcher | None) -> Launcher | None:
    """Return a launcher that is itself a child of a wrapper."""
    return None if launcher is None else replace(launcher, starts_child=False)


def _with_command(program: str, args: Sequence[str]) -> Launcher | None:
    cache, commands = _COMMANDS[program]
    words = [word for word in args if not word.startswith("-")]
    # Not only the first word: an option before the command may have a value (`docker --context x run`).
    for command in sorted(commands, key=lambda each: -len(each)):
        wanted = command.split()
        if any(list(words[place : place + len(wanted)]) == wanted for place in range(3)):
            return Launcher(f"{program} {command}", cache, program not in _DETACHED)
    return None


def _script_of_shell(args: Sequence[str]) -> str:
    """Return the script of a shell: the word after `-c` (`-lc`, `-ec`)."""
    for place, word in enumerate(args[:-1]):
        if re.fullmatch(r"-\w*c\w*", word):
            return args[place + 1]
    return ""


def _in_script(script: str, depth: int) -> Launcher | None:
    """Return the first launcher among the commands of a shell script."""
    try:
        reader = shlex.shlex(script, posix=True, punctuation_chars=True)
        reader.whitespace_split = True
        words = list(reader)
    except ValueError:  # an unclosed quote
        return None
    command: list[str] = []
    for word in [*words, ";"]:
        if word not in _SEPARATORS:
            command += [word] if command or not _ASSIGNMENT.match(word) else []
            continue
        if (launcher := _found(command, depth - 1)) is not None:
            return launcher
        command = []
    return None


def _behind_wrapper(args: Sequence[str], depth: int) -> Launcher | None:
    """Return the first launcher among the words after a wrapper, as in `env -i X=1 npx` and `nice -n 5 npx`."""
    tried = 0
    for place, word in enumerate(args):
        if word == "-S":  # env: the next word is a whole line
            return _in_script(" ".join(args[place + 1 :]), depth)
        if word.startswith("-") or _ASSIGNMENT.match(word):
            continue
        if (launcher := _found(args[place:], depth - 1)) is not None:
            return launcher
        tried += 1
        if tried == _VALUES:
            break
    return None
