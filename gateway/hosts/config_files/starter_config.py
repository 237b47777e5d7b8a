"""A first mcp-gateway.toml, with comments for its author."""

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gateway.config.expansion import expand
from gateway.config.foreign import upstream_name
from gateway.config.problems import config_error
from gateway.config.schema import Settings
from gateway.config.server_names import name_for_command
from gateway.config.setting_types import OWN_NAME
from gateway.config.toml_text import table_text
from gateway.config.validation import validate
from gateway.errors import ConfigError

HEAD = """\
# The configuration of mcp-gateway. `mcp-gateway config keys` lists every key. What is commented out shows the defaults.
#
# - Relative paths (`cwd`, and commands with a slash in them) are relative to the folder of this file.
# - Values may contain ${NAME}, an environment variable that must be set, or ${NAME:-default}; $${ is a literal ${.
#   Secrets may be in a file, the keyring, or a vault: ${file:PATH}, ${keyring:NAME}, ${cmd:COMMAND}.
# - `mcp-gateway config check` reports mistakes in this file, `mcp-gateway tools` lists what a host is offered;
#   `mcp-gateway import` adds the servers of your hosts, `mcp-gateway install <host>` registers the gateway there.

[gateway]
# name = "mcp-gateway"          # the name by which the gateway introduces itself to hosts
# prefix = "always"             # tool names: "always" <upstream>__<tool>, "when-needed" (names that collide), "never"
# profile = "claude-desktop"    # the profile for every host; omitted: chosen by what the host says it is

[http]                          # for `mcp-gateway serve --http`
# bind = "127.0.0.1"            # any other address needs a token
# port = 8484
# token = "${MCP_GATEWAY_TOKEN}"

# --- Upstreams: the MCP servers behind the gateway. Each has either `command` (a program that is started and
# --- talks over stdio) or `url` (a server that is already running). A name has letters, digits, `-` and single `_`.

"""

EXAMPLE = """\
# [upstreams.files]
# command = "npx"
# args = ["-y", "@modelcontextprotocol/server-filesystem", "${HOME}"]
# env = {}                      # it gets these variables and the few that every program needs, nothing else

# [upstreams.remote]
# url = "https://example.com/mcp"
# headers = { Authorization = "Bearer ${REMOTE_TOKEN}" }
"""


def first_configuration(upstreams: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the text of a new mcp-gateway.toml with these upstreams, or with commented examples if there are none.

    Raises:
        ConfigError: an upstream that the gateway could not use.
    """
    _, problems = validate(Settings, {"upstreams": {name: dict(table) for name, table in upstreams.items()}})
    if problems:
        raise config_error("upstreams", problems)
    if not upstreams:
        return HEAD + EXAMPLE
    return HEAD + "\n".join(table_text(["upstreams", name], table) for name, table in upstreams.items())


def upstreams_of(urls: Sequence[str], commands: Sequence[str], taken: Iterable[str] = ()) -> dict[str, dict[str, Any]]:
    """Parse upstreams from `NAME=URL` and `NAME=COMMAND LINE`; others are named after host or package.

    Names are unique; `taken` are those that there are already. A relative path in a command is one in the current
    folder, which becomes the server's working folder.

    Raises:
        ConfigError: a text that is neither.
    """
    upstreams: dict[str, dict[str, Any]] = {}
    for given in urls:
        name, url = _named(given)
        if not url.startswith(("http://", "https://")):
            remedy = "give it as NAME=http://host/path or NAME=https://host/path"
            raise ConfigError("is not the address of a server", where="--upstream", remedy=remedy)
        _add(upstreams, name or urlsplit(url).hostname or "upstream", {"url": url}, taken)
    for given in commands:
        name, line = _named(given)
        _add(upstreams, name or "", from_line(line), taken)
    return upstreams


def from_line(line: str) -> dict[str, Any]:
    """Parse an upstream from a command line, split as by a shell.

    Raises:
        ConfigError: a quote is not closed, or the line is empty.
    """
    try:
        words = shlex.split(line, posix=os.name != "nt")
    except ValueError as error:
        raise ConfigError(f"cannot be split into words: {str(error).lower()}", where="--command") from None
    if not words:
        raise ConfigError("is empty", where="--command", remedy='give it as NAME="program argument ..."')
    return from_words(words)


def from_words(words: Sequence[str]) -> dict[str, Any]:
    """Return an upstream that a command line typed in the current folder starts from anywhere.

    In the configuration, a relative path to the program would be relative to the file's folder, and one among the
    arguments to the folder of whatever starts the gateway. So the program's becomes absolute; if an argument is a file
    or folder here, the current folder becomes the server's working folder.
    """
    command, *args = words
    upstream: dict[str, Any] = {"command": _from_here(command), **({"args": args} if args else {})}
    return upstream | ({"cwd": str(Path.cwd())} if any(map(_is_here, args)) else {})


def _from_here(command: str) -> str:
    if os.path.isabs(command) or command.startswith(("~", "$")) or not ("/" in command or os.sep in command):
        return command
    return str(Path(command).absolute())


def _is_here(argument: str) -> bool:
    """Whether an argument is, or ends with (`--file=x`), the relative path of a file or folder that exists."""
    path = argument.partition("=")[2] if argument.startswith("-") else argument
    if not path or os.path.isabs(path) or path.startswith(("~", "$", "-")):
        return False
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # too long, or with a null character
        return False


def check_upstream(name: str, upstream: Mapping[str, Any]) -> None:
    """Check the table of an upstream by itself, as `mcp-gateway add` does before it is written.

    Raises:
        ConfigError: the gateway could not use it.
    """
    expanded, _ = expand({"upstreams": {name: dict(upstream)}}, os.environ)
    _, problems = validate(Settings, expanded)
    if problems:
        raise config_error("this server", problems)


def _named(given: str) -> tuple[str | None, str]:
    name, equals, rest = given.partition("=")
    return (name, rest) if equals and name.replace("-", "").replace("_", "").isalnum() else (None, given)


def _add(upstreams: dict[str, dict[str, Any]], name: str, table: dict[str, Any], taken: Iterable[str]) -> None:
    wanted = name or name_for_command(str(table["command"]), table.get("args", ()))
    upstreams[upstream_name(wanted, {OWN_NAME, *taken, *upstreams})] = table
