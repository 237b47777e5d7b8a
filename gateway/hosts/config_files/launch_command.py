"""The command by which a host starts the gateway: program, arguments, environment; and recognising it in an entry."""

import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath, PureWindowsPath
from typing import Any
from urllib.parse import urlsplit

from gateway.config.http_settings import HttpSettings
from gateway.core.model.json_values import as_object, is_list, is_object
from gateway.system.loopback import is_this_machine

SCRIPT = "mcp-gateway"
DISTRIBUTION = "mcp-multimodal-gateway"

_CACHES = frozenset({"archive-v0", "environments-v2"})
"""Folders of uv's cache: programs started with `uvx` are there until the cache is cleaned."""


@dataclass(frozen=True)
class Launch:
    """A program, its arguments, and the environment that it needs in addition to the host's."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]


def own_launch(
    config: Path,
    profile: str | None,
    *,
    shared: bool = False,
    toolset: str | None = None,
    given: Mapping[str, str] | None = None,
    executable: str = sys.executable,
    environ: Mapping[str, str] = os.environ,
) -> Launch:
    """Return the command that starts this gateway with this configuration (an absolute path).

    It is the script beside the interpreter if there is one, or else `python -m gateway`; never the target of a symlink,
    which would leave the virtual environment. PATH is the current one, because desktop programs start with a minimal
    one; `given` are additional variables. `shared`: it attaches to a gateway that hosts share.
    `toolset`: the only one that the host is offered.
    """
    script = _script(Path(executable))
    command, args = (str(script), ()) if script is not None else (executable, ("-m", "gateway"))
    chosen = (() if profile is None else ("--profile", profile), () if toolset is None else ("--toolset", toolset))
    options = (*chosen[0], *chosen[1], *(("--shared",) if shared else ()))
    env = {"PATH": search_path(environ)}
    if script is None and (modules := environ.get("PYTHONPATH")):
        env["PYTHONPATH"] = os.pathsep.join(os.path.abspath(part) for part in modules.split(os.pathsep) if part)
    return Launch(command, (*args, "serve", "--config", str(config), *options), {**env, **(given or {})})


def given_in(launch: Launch) -> dict[str, str]:
    """Return the variables in our entry that a user gave it: all except those that `own_launch` sets."""
    return {name: value for name, value in launch.env.items() if name not in ("PATH", "PYTHONPATH")}


def search_path(environ: Mapping[str, str]) -> str:
    """Return PATH without relative folders, which mean something else in a host, and without repetitions."""
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(dict.fromkeys(folder for folder in folders if os.path.isabs(folder)))


def lives_in_cache(executable: str = sys.executable) -> bool:
    """Whether this gateway may be removed when uv's cache is cleaned."""
    return bool(_CACHES & set(PurePath(executable).parts))


def is_own(server: Any, ports: Collection[int] = ()) -> bool:
    """Whether an entry of a host starts (or calls) a gateway of ours. `ports`: where some serve hosts now."""
    if not is_object(server):
        return False
    launch = launch_in(server)
    if launch is None:
        return _is_address(address_of_entry(server), ports)
    return _is_launch([launch.command, *launch.args])


def launch_in(entry: Mapping[str, Any]) -> Launch | None:
    """Return the command in a host's entry, as far as it is given; None if the entry only has an address."""
    command: Any = entry.get("command") or entry.get("cmd")
    words = [*_words(command), *_words(entry.get("args"))]
    if not words:
        return None
    inner = as_object(command).get("env")
    given: dict[str, str] = {}
    for env in (inner, entry.get("environment"), entry.get("envs"), entry.get("env")):
        if is_object(env):
            given |= {name: value for name, value in env.items() if isinstance(value, str)}
    return Launch(words[0], tuple(words[1:]), given)


def address_of_entry(entry: Mapping[str, Any]) -> str:
    """Return the URL that a host's entry calls, or ""."""
    return next(
        (value for key in ("url", "serverUrl", "httpUrl", "uri") if isinstance(value := entry.get(key), str)), ""
    )


def _is_launch(words: Sequence[str]) -> bool:
    if "serve" not in words:
        return False
    before = list(words[: words.index("serve")])
    names = [PureWindowsPath(word).stem.lower() for word in before]
    return SCRIPT in names or any(word.startswith(DISTRIBUTION) for word in before) or before[-2:] == ["-m", "gateway"]


def _is_address(url: str, ports: Collection[int]) -> bool:
    try:
        parts = urlsplit(url)
        return (
            is_this_machine(parts.hostname or "")
            and parts.port in (HttpSettings().port, *ports)
            and parts.path.split("/")[1:2] in (["mcp"], ["sse"])
        )
    except ValueError:
        return False


def _words(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if is_object(value):  # Zed's older form
        return [*_words(value.get("path")), *_words(value.get("args"))]
    return [str(word) for word in value] if is_list(value) else []


def _script(executable: Path) -> Path | None:
    names = (f"{SCRIPT}.exe", SCRIPT) if sys.platform == "win32" else (SCRIPT,)
    return next((path for name in names if (path := executable.parent / name).is_file()), None)
