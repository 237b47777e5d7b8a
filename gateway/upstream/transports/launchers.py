"""Commands that may have to download a server before they can start it: `npx`, `uvx`, `docker run` and their like.

Pure: decided by the command and its arguments alone, also where they stand behind a shell, `env` or another wrapper.
"""

import ntpath
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Launcher:
    """A program that installs before it starts: how it is named, and whose cache it fills."""

    name: str
    """As a user writes it: `npx`, `uv run`."""
    cache: str
    """The programs that share one cache have this in common."""
    starts_child: bool = True
    """Whether it is alone until the server becomes a process below it, so that a second process shows that it has
    installed.
    """


_ALONE: Mapping[str, str] = {
    "npx": "npm",
    "pnpx": "pnpm",
    "bunx": "bun",
    "uvx": "uv",
    "dnx": "dotnet",
}
"""Programs that always do, and their caches."""

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
"""Programs that do with one of these commands, and their caches."""

_DETACHED = frozenset({"docker", "podman", "nerdctl"})
"""The server is started by a service of theirs, or in their own place."""

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish"})
_WINDOWS_SHELLS = frozenset({"cmd"})
_WRAPPERS = frozenset({"env", "nice", "nohup", "time", "sudo", "exec", "stdbuf", "setsid", "caffeinate"})
_ENDING = re.compile(r"\.(?:exe|cmd|bat|ps1)$", re.IGNORECASE)
_ASSIGNMENT = re.compile(r"^\w+=")
_SEPARATORS = frozenset({"&&", ";", "||", "|", "&"})
_DEEPEST = 5
"""How many wrappers are looked behind."""
_VALUES = 3
"""How many words after a wrapper may be values of its options (`sudo -u nobody npx`) before the command."""


def launcher_of(command: str | None, args: Sequence[str]) -> Launcher | None:
    """The launcher that a command is, or leads to; None for one that starts at once what is there."""
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
    """One that is a child itself."""
    return None if launcher is None else replace(launcher, starts_child=False)


def _with_command(program: str, args: Sequence[str]) -> Launcher | None:
    cache, commands = _COMMANDS[program]
    words = [word for word in args if not word.startswith("-")]
    # An option may have a value of its own in front of the command (`docker --context x run`), so not the first alone.
    for command in sorted(commands, key=lambda each: -len(each)):
        wanted = command.split()
        if any(list(words[place : place + len(wanted)]) == wanted for place in range(3)):
            return Launcher(f"{program} {command}", cache, program not in _DETACHED)
    return None


def _script_of_shell(args: Sequence[str]) -> str:
    """What a shell is given to run: the word after `-c` (`-lc`, `-ec`)."""
    for place, word in enumerate(args[:-1]):
        if re.fullmatch(r"-\w*c\w*", word):
            return args[place + 1]
    return ""


def _in_script(script: str, depth: int) -> Launcher | None:
    """The first launcher among the commands of a line for a shell."""
    try:
        reader = shlex.shlex(script, posix=True, punctuation_chars=True)
        reader.whitespace_split = True
        words = list(reader)
    except ValueError:  # a quote without an end
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
    """`env -i X=1 npx`, `nice -n 5 npx`: the first word from which on there is a launcher."""
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
