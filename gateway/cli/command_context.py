"""Shared set-up of commands: the connection opened before, the settings, profiles, and running until a signal."""

import os
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import anyio
import typer

from gateway.cli.completion import profile_names
from gateway.cli.exit_codes import INTERRUPTED, TERMINATED, refuse
from gateway.config.builtin_profiles import load_profiles
from gateway.config.command_line import settings_from_arguments
from gateway.config.find_config import FILE_NAME, FILE_VARIABLE
from gateway.config.load_settings import LoadedSettings, load_settings
from gateway.config.schema import Settings
from gateway.core.model.caller import Caller
from gateway.core.model.revisions import NEWEST_HANDSHAKE, REVISIONS
from gateway.core.profiles.host_profiles import narrow
from gateway.core.profiles.match_profile import choose_profile
from gateway.core.profiles.profile import Profile, ProfileSource
from gateway.errors import ConfigError

if TYPE_CHECKING:
    from gateway.content.shaping import Shaper
    from gateway.content.store import ContentStore
    from gateway.serving.mcp.early_stdio import EarlyStdio

_OWN_PROFILE = "the command line"

ALL = "all"
"""Used in place of a profile's name: all profiles."""

AS_GIVEN = "passthrough"
"""The profile that changes nothing."""

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help=f"Configuration file. Default: ${FILE_VARIABLE}, ./{FILE_NAME}, your config folder.",
    ),
]
UpstreamUrls = Annotated[
    list[str] | None,
    typer.Option("--upstream", metavar="URL", help="Upstream server, instead of a configuration. Repeatable."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Revision = Annotated[
    str, typer.Option("--revision", metavar="DATE", help=f"Protocol revision of the host: {', '.join(REVISIONS)}.")
]

ProfileNames = list[str] | None
"""The names given with `--profile`: a list, so that a second one does not silently replace the first.

Each may be several, joined by commas. `the_profile` and `the_profiles` are the one rule for all commands.
"""

Returned = TypeVar("Returned")


def profile_option(help: str, *, completion: Callable[[str], list[str]] | None = profile_names) -> Any:
    """Return the option `--profile`, for a parameter of type `ProfileNames`; `the_profile` is its value."""
    return typer.Option("--profile", metavar="NAME", autocompletion=completion, help=help)


def profiles_option() -> Any:
    """Return the option `--profile` of a command that takes several; `the_profiles` is its value."""
    help = f"Profiles of hosts, joined by commas or repeated; {ALL!r} for every host. Default: gateway.profile."
    return typer.Option("--profile", metavar="NAME[,NAME...]", autocompletion=profile_names, help=help)


def the_profile(names: ProfileNames) -> str | None:
    """Return the name given with `--profile`; exit with an error if there are several, or all are wanted."""
    given = the_profiles(names)
    if len(given) > 1 or ALL in given:
        refuse(
            f"--profile takes one name here, and is given {', '.join(given)}: several are for `call` and `explain` "
            "(mcp-gateway profiles lists them)"
        )
    return given[0] if given else None


def the_profiles(names: ProfileNames) -> tuple[str, ...]:
    """Return the names given with `--profile`, each once; empty if there are none."""
    split = [part.strip() for given in names or () for part in given.split(",")]
    if "" in split:
        refuse("--profile: a name is missing; names are joined by commas, without blanks")
    return tuple(dict.fromkeys(split))


@dataclass(frozen=True)
class CommandContext:
    """State from before the command: the host's stdio connection, if it is already answered, and `--debug`.

    `after_dashes`: how many words of a program's command line were given after `--`.
    """

    opening: "EarlyStdio | None" = None
    debug: bool = False
    after_dashes: int = 0


def settings_for(config: Path | None, urls: Sequence[str] | None, command: Sequence[str] | None = None) -> Settings:
    """Return the settings for a command that serves nobody: of the file, or of the upstreams on the command line."""
    return loaded_for(config, urls, command, serves=False).settings


def loaded_for(
    config: Path | None, urls: Sequence[str] | None, command: Sequence[str] | None = None, *, serves: bool = True
) -> LoadedSettings:
    """Load the settings of the file, or make settings of the upstreams named on the command line.

    `serves`: whether somebody is going to be served (`load_settings`).

    Raises:
        ConfigError: there is neither, or it is invalid.
    """
    if urls or command:
        if config is not None:
            refuse("give either --config or upstreams, not both")
        return LoadedSettings(settings_from_arguments(urls or (), command or ()), None)
    loaded = load_settings(config, serves=serves)
    if loaded.path is None:
        raise ConfigError(
            "there is no configuration",
            remedy="`mcp-gateway add`, `import` or `init` writes one; or name a file with --config, a server with "
            "--upstream",
        )
    return loaded


def settings_if_any(config: Path | None, *, serves: bool = False) -> LoadedSettings:
    """Return the settings, or the defaults if no file is found, for a command that reaches no upstream."""
    return load_settings(config, reaches_upstreams=False, serves=serves)


def chosen_profiles(settings: Settings, names: Sequence[str], revision: str) -> Mapping[str, Profile]:
    """Return the profiles of these names for gateway.model, or all for `all`, narrowed to the revision.

    Without a name, it is that of gateway.profile, or the default.
    """
    if revision not in REVISIONS:
        refuse(f"--revision: there are {', '.join(REVISIONS)}")
    profiles = load_profiles(settings)
    wanted = names or [settings.gateway.profile or "default"]
    chosen = profiles if ALL in wanted else [_for_the_model(settings, profiles, name) for name in wanted]
    return {each: narrow(profiles[each], revision) for each in chosen}


def _for_the_model(settings: Settings, profiles: Mapping[str, Profile], name: str) -> str:
    """Return the profile of this name, or its variant for gateway.model."""
    return choose_profile(profiles, Caller(profile=name), None, settings.gateway.model).profile.name


def without_waiting(settings: Settings, profile: str, revision: str) -> tuple[Settings, Caller]:
    """Return settings and a caller for listing tools without waiting, for commands that have already waited."""
    extends = _for_the_model(settings, load_profiles(settings), profile)
    return _calling(settings, extends, {"wait.tools_list": 0.0}, revision)


def with_raw_profile(settings: Settings, names_of: Profile) -> tuple[Settings, Caller]:
    """Return settings and a caller that gets raw results, with tools under the names that `names_of` gives them."""
    tools = names_of.tools
    names = {"name_max": tools.name_max, "host_prefix": tools.host_prefix, "name_chars": tools.name_chars}
    sets = {"wait.tools_list": 0.0, "tools": {**names, "helpers": True}, "apps.host": "always"}
    return _calling(settings, AS_GIVEN, sets, NEWEST_HANDSHAKE)


def _calling(settings: Settings, extends: str, sets: Mapping[str, Any], revision: str) -> tuple[Settings, Caller]:
    source = ProfileSource(extends=extends, sets=dict(sets))
    profiles = {**settings.profiles, _OWN_PROFILE: source}
    return settings.model_copy(update={"profiles": profiles}), Caller(revision=revision, profile=_OWN_PROFILE)


@asynccontextmanager
async def open_shaper(settings: Settings, store: "ContentStore | None" = None) -> "AsyncGenerator[Shaper]":
    """Open a shaper of results with media workers of its own; without `store`, content is stored in memory."""
    from gateway.content.media import MediaWorkers
    from gateway.content.shaping import Shaper
    from gateway.content.store import MemoryStore

    async with MediaWorkers(settings.media) as media:
        blocks = settings.limits.blocks
        yield Shaper(store or MemoryStore(settings.store), media, max_blocks=blocks, measures=True)


def run_until_signal(
    work: Callable[[], Awaitable[Returned]],
    *,
    fast_loop: bool = False,
    interrupt: Callable[[], bool] | None = None,
    terminate: Callable[[], bool] | None = None,
) -> Returned | int:
    """Run `work` to its end. A signal cancels it, so that no process is left behind, and sets the exit code.

    `fast_loop`: for a command that serves hosts. On Ctrl-C, `interrupt` is called first; if it returns true, it has
    ended something else and `work` goes on. So is `terminate` on SIGTERM, once; then `work` is about to end by itself.
    """
    return anyio.run(
        _until_signal, work, interrupt, terminate, backend_options={"use_uvloop": fast_loop and _has_uvloop()}
    )


async def _until_signal(
    work: Callable[[], Awaitable[Returned]],
    interrupt: Callable[[], bool] | None,
    terminate: Callable[[], bool] | None,
) -> Returned | int:
    outcome: list[Returned | int] = []
    async with anyio.create_task_group() as tasks:
        if sys.platform != "win32":  # there, Ctrl-C arrives as KeyboardInterrupt
            tasks.start_soon(_cancel_on_signal, tasks.cancel_scope, outcome, interrupt, terminate)
        outcome.append(await work())
        tasks.cancel_scope.cancel()
    return outcome[0]


async def _cancel_on_signal(
    scope: anyio.CancelScope,
    outcome: "list[Returned | int]",
    interrupt: Callable[[], bool] | None,
    terminate: Callable[[], bool] | None,
) -> None:
    # After the signal that ends the work, another one ends the process, whatever it is doing.
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            if number == signal.SIGINT and interrupt is not None and interrupt():
                continue
            if number == signal.SIGTERM and terminate is not None and terminate():
                continue
            outcome.append(INTERRUPTED if number == signal.SIGINT else TERMINATED)
            break
    # A KeyboardInterrupt would break the clean-up in progress, with a traceback for each part. The process reaper ends
    # the processes that are left.
    signal.signal(signal.SIGINT, _end_now)
    scope.cancel()


def _end_now(_number: int, _frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


def _has_uvloop() -> bool:
    from importlib.util import find_spec

    return find_spec("uvloop") is not None
