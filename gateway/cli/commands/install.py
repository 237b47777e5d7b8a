"""`mcp-gateway install` and `uninstall`: add the gateway to a host's own configuration file, or remove it."""

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Annotated, Any, cast

import anyio
import typer

from gateway.cli.command_context import AsJson, ConfigFile, ProfileNames, profile_option, the_profile
from gateway.cli.completion import host_names
from gateway.cli.diagnosis.findings import list_names
from gateway.cli.diagnosis.start_faults import check_start
from gateway.cli.early_lists import prepare_for_hosts
from gateway.cli.exit_codes import DONE, complain, refuse
from gateway.cli.terminal import remark, say, say_json, say_table
from gateway.cli.toolset_option import ToolsetName, check_toolsets
from gateway.config.builtin_profiles import load_profiles
from gateway.config.find_config import cache_folder, find_file
from gateway.config.load_settings import load_settings
from gateway.config.schema import Settings
from gateway.config.secrets import HIDDEN, hide, longest_first
from gateway.core.fact_words import counted
from gateway.core.profiles.match_profile import find_profile
from gateway.errors import ConfigError
from gateway.hosts.config_files.backups import Backups
from gateway.hosts.config_files.files import decoded_text, read_bytes
from gateway.hosts.config_files.gateway_entry import NAME
from gateway.hosts.config_files.host_environment import missing_in_host
from gateway.hosts.config_files.host_format import HostFormat
from gateway.hosts.config_files.hosts import HOSTS, find_host
from gateway.hosts.config_files.import_servers import known_to
from gateway.hosts.config_files.launch_command import Launch, given_in, is_own, launch_in, lives_in_cache, own_launch
from gateway.hosts.config_files.machine import Machine
from gateway.hosts.config_files.register_gateway import (
    Registered,
    Unregistered,
    host_document,
    register,
    unregister,
    user_file,
)
from gateway.hosts.config_files.registration_status import RegistrationStatus, registration_status
from gateway.hosts.config_files.servers import read_servers
from gateway.hosts.config_files.servers_behind import ServersBehind, removal, servers_behind
from gateway.serving.control.gateway_ports import gateway_ports
from gateway.serving.control.records import running

HostName = Annotated[
    str | None,
    typer.Argument(metavar="HOST", help=f"One of {', '.join(HOSTS)}.", autocompletion=host_names),
]
HostFile = Annotated[
    Path | None, typer.Option("--file", metavar="FILE", help="Another file of the host, such as a project's.")
]
EntryName = Annotated[str, typer.Option("--name", metavar="NAME", help="Name of the gateway in that file.")]
_NEVER_STARTED = "not yet started by the gateway, and a host's first session may lack tools until a first start is over"
_SHORTEST_SECRET = 8
"""Minimum length of a value that is redacted anywhere in a diff; shorter ones may be unrelated text."""

DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the change as a diff, and change nothing.")]


def install(
    host: HostName = None,
    config: ConfigFile = None,
    profile: Annotated[ProfileNames, profile_option("Profile to use instead of recognising the host.")] = None,
    only: Annotated[bool, typer.Option("--only", help="Remove the other servers.")] = False,
    shared: Annotated[
        bool, typer.Option("--shared", help="Share one gateway with the other hosts that are installed so.")
    ] = False,
    toolset: ToolsetName = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            "-e",
            metavar="NAME[=VALUE]",
            help="Variable for the entry; its current value by default. Repeatable.",
        ),
    ] = None,
    file: HostFile = None,
    name: EntryName = NAME,
    dry_run: DryRun = False,
    listing: Annotated[
        bool, typer.Option("--list", help="List the hosts, their files, and which have the gateway.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Register the gateway in a host; without --only, its other servers stay."""
    at = Machine.here(gateway_ports())
    if listing:
        return _list(at, as_json, config)
    if as_json:
        refuse("--json goes with --list")
    if host is None:
        refuse("name a host, or use --list")
    chosen = the_profile(profile)
    known = find_host(host)
    configuration, settings = _configuration(config, chosen, toolset)
    chosen = chosen or _own_profile(known, settings)
    target = file.absolute() if file is not None else user_file(known, at)
    before = _given_before(known, target, name)
    given = {**before, **_given(env or (), at)}
    changed = {key for key, value in given.items() if before.get(key) != value}
    # A diff is for people, and the given values are usually secrets.
    shown = {**given, **dict.fromkeys(changed, HIDDEN)} if dry_run else given
    launch = own_launch(configuration, chosen, shared=shared, toolset=toolset, given=shown)
    others = _others(known, target, at, configuration) if only else _OtherServers()
    done = register(known, target, launch, Backups.of_user(), name=name, only=only, dry_run=dry_run)
    if dry_run:
        values = (json.dumps(value, ensure_ascii=False)[1:-1] for value in (*before.values(), *given.values()))
        say(hide(done.diff, longest_first(values, _SHORTEST_SECRET)) or f"{target}: nothing to change")
        return DONE
    _say_registered(done, known, name, configuration)
    _say_besides(known, chosen, settings)
    status = registration_status(known, at)
    behind = servers_behind(known, target, at, configuration, status.projects)
    _say_others(done, known, others, behind, config)
    if file is None:
        _say_projects(status, behind, elsewhere=True)
    again = ["mcp-gateway", "install", known.name, *(["--config", str(config)] if config is not None else [])]
    again += [*(["--profile", chosen] if chosen is not None else []), *(["--name", name] if name != NAME else [])]
    again += [] if toolset is None else ["--toolset", toolset]
    again += [*(["--shared"] if shared else []), *(["--file", str(file)] if file is not None else [])]
    _say_variables(known, configuration, launch, at, shlex.join(again))
    if lives_in_cache():
        remark("warning: this gateway was started with uvx, and disappears with uv's cache: use `uv tool install`")
    _say_first_starts(settings, config)
    anyio.run(prepare_for_hosts, config)
    return DONE


def uninstall(
    host: Annotated[str, typer.Argument(metavar="HOST", help=f"One of {', '.join(HOSTS)}.", autocompletion=host_names)],
    file: HostFile = None,
    name: EntryName = NAME,
    dry_run: DryRun = False,
) -> int:
    """Remove the gateway from a host and restore its file; changes made since are kept."""
    known = find_host(host)
    target = file.absolute() if file is not None else user_file(known, Machine.here())
    done = unregister(known, target, Backups.of_user(), name=name, dry_run=dry_run)
    if done is None:
        say(f"{target}: the gateway is not registered as {name!r}; nothing to do")
    elif dry_run:
        say(done.diff)
    elif done.removed:
        say(f"{target}: removed again; there was no such file before")
    elif done.exact:
        say(f"{target}: as it was before, byte for byte")
    else:
        _say_removed(known, name, done)
    if done is not None and not dry_run and running():
        say(f"a session of {known.title} that is open keeps the gateway until it ends")
    return DONE


def _say_removed(host: HostFormat, name: str, done: Unregistered) -> None:
    """Say what was removed from a file that is not what it was before, because it has been written since."""
    say(f"{done.file}: removed the gateway's entry {name!r}; everything else in it was kept as it is")
    if done.put_back:
        say(f"put back: {', '.join(done.put_back)}")
    for folder, server in done.missing:
        remark(f"not put back: {server} for {folder} alone, which was taken out since (not by the gateway)")
    if done.backup is not None:
        say(
            f"{host.title}, or you, changed the file since the gateway was registered, so the file of before was not "
            f"put in its place; it is still in {done.backup}"
        )


def _configuration(asked: Path | None, profile: str | None, toolset: str | None) -> tuple[Path, Settings]:
    """Return the configuration that the host will start the gateway with, and its settings. It must be usable now."""
    loaded = load_settings(asked)
    if loaded.path is None:
        remedy = "`mcp-gateway init` writes one, `mcp-gateway import` one with the servers of your hosts"
        raise ConfigError("there is no configuration to register", remedy=remedy)
    profiles = load_profiles(loaded.settings)
    if profile is not None:
        find_profile(profiles, profile)
    check_toolsets(loaded.settings, () if toolset is None else (toolset,))
    check_start(loaded.settings, over_http=False)
    return loaded.path.absolute(), loaded.settings


def _own_profile(host: HostFormat, settings: Settings) -> str | None:
    """Return the profile that the entry has to choose, because the name of the host's client is that of others too."""
    own = host.profile or host.name
    is_chosen = host.nameless and settings.gateway.profile is None
    return own if is_chosen and own in load_profiles(settings) else None


def _say_besides(host: HostFormat, profile: str | None, settings: Settings) -> None:
    """Print what the host's users may have to do besides, and that the host has no profile of its own."""
    if host.hint is not None:
        remark(f"{host.title}: {host.hint}")
    recognised = profile is None and settings.gateway.profile is None
    if recognised and (host.profile or host.name) not in load_profiles(settings):
        remark(f"{host.title} has no profile of its own yet: it gets `default`, which works everywhere")


def _given(env: Sequence[str], at: Machine) -> dict[str, str]:
    """The variables of `--env`, with the given values or those of this environment."""
    given: dict[str, str] = {}
    for one in env:
        name, has_value, value = one.partition("=")
        if not name:
            refuse("give it as --env NAME or --env NAME=VALUE")
        if not has_value and name not in at.environ:
            refuse(f"{name} is not set here: give it as --env {name}=VALUE")
        given[name] = value if has_value else at.environ[name]
    return given


def _given_before(host: HostFormat, file: Path, name: str) -> dict[str, str]:
    """The variables that the host's entry for the gateway already has."""
    document, _ = host_document(host, file)
    entry = (document.table(host.table) or {}).get(name)
    launch = launch_in(cast("Mapping[str, Any]", entry)) if is_own(entry) else None
    return given_in(launch) if launch is not None else {}


def _say_variables(host: HostFormat, configuration: Path, launch: Launch, at: Machine, again: str) -> None:
    """Print the configuration's variables that the host may not pass to the gateway, and how to pass them.

    `again` is the command line to repeat the installation, as it was given.
    """
    missing = missing_in_host(configuration, launch.env)
    for sentence in missing.sentences(configuration, host.title):
        remark(f"warning: {sentence}")
    if missing.names:
        remark(
            f"  this puts {'it' if len(missing.names) == 1 else 'them'} into its file, for every start of the gateway:"
        )
        remark(f"  {again} {missing.options(at.environ)}")


def _say_first_starts(settings: Settings, config: Path | None) -> None:
    """Print the upstreams that have never been started, for which hosts would have to wait: some time out early.

    Those at a URL are not started: there is nothing to wait for, or nothing that waiting could change.
    """
    from gateway.upstream import Catalogues  # the other commands do without the SDK

    cache = cache_folder(os.environ)
    if cache is None:  # lists are not kept between starts
        return
    catalogues = Catalogues(cache / "catalogues")
    started = {name: one for name, one in settings.upstreams.items() if one.enabled and one.command is not None}
    new = [name for name, one in started.items() if catalogues.recall(one) is None]
    if new:
        tools = shlex.join(["mcp-gateway", "tools", *(["--config", str(config)] if config is not None else [])])
        say(f"run `{tools}` once: {', '.join(new)} {'is' if len(new) == 1 else 'are'} {_NEVER_STARTED}")


def _say_registered(done: Registered, host: HostFormat, name: str, configuration: Path) -> None:
    if not done.diff:
        say(f"{done.file}: {host.title} has the gateway already, as {name!r}, with {configuration}")
        return
    say(f"{done.file}: the gateway is registered in {host.title} as {name!r}, with {configuration} ({host.after})")
    if done.backup is not None:
        say(f"the previous version is kept in {done.backup}; `mcp-gateway uninstall {host.name}` restores it")


def _say_others(
    done: Registered, host: HostFormat, others: "_OtherServers", behind: ServersBehind, config: Path | None
) -> None:
    """Print what happens to the host's other servers, and which of these the gateway does not have."""
    if beside := done.installation.beside:
        say(f"its other servers stay beside it: {', '.join(beside)}")
        say(_way(host, beside, behind, config))
        if (twice := behind.twice(beside)) is not None:
            remark(f"warning: {twice}")
    if done.installation.taken_out:
        say(f"taken out: {', '.join(done.installation.taken_out)}")
    back = f"(`mcp-gateway uninstall {host.name}` brings them back)"
    if others.lost:
        remark(f"warning: not behind the gateway: {', '.join(others.lost)} {back}")
    for project, name in behind.in_projects:
        remark(f"warning: {host.title} starts {name} in {project} as well, beside the gateway")
        remark(f"  run `{removal(name)}` there to take it out (uninstall does not put it back)")
    if others.off:
        names = ", ".join(others.off)
        remark(f"warning: not enabled behind the gateway: {names} (`mcp-gateway enable NAME` switches one on)")


def _way(host: HostFormat, servers: Sequence[str], behind: ServersBehind, config: Path | None) -> str:
    """Describe how servers of a host get behind the gateway alone; `config` is the option, as it was given."""
    named = ["--config", str(config)] if config is not None else []
    import_, install = (shlex.join(["mcp-gateway", each, host.name, *named]) for each in ("import", "install"))
    return behind.way(servers, f"`{import_}`", f"`{install} --only`")


@dataclass(frozen=True)
class _OtherServers:
    """Names of servers in the host's file that `--only` treats with care.

    Those in `lost` are not in the configuration, and those in `off` are not enabled there.
    """

    lost: tuple[str, ...] = ()
    off: tuple[str, ...] = ()


def _others(host: HostFormat, file: Path, at: Machine, configuration: Path) -> _OtherServers:
    """Compare the host's own servers with the configuration."""
    document, _ = host_document(host, file)
    servers = [one for one in read_servers(document, host, at) if not one.own and not one.project]
    is_json = configuration.suffix.lower() == ".json"
    known = known_to("" if is_json else decoded_text(read_bytes(configuration), configuration), str(configuration))
    rest = [] if is_json else servers
    return _OtherServers(
        tuple(one.name for one in rest if not known.has(one)),
        tuple(one.name for one in rest if known.is_off(one)),
    )


def _list(at: Machine, as_json: bool, config: Path | None) -> int:
    hosts = [registration_status(host, at) for host in HOSTS.values()]
    if as_json:
        say_json([one.to_json() for one in hosts])
        return DONE
    rows = [(one.host.name, _in_words(one), _shown(one.file, at)) for one in hosts]
    say_table(("host", "the gateway", "file"), rows, unfolded=3)  # a path is copied, so it stays in one piece
    for one in hosts:
        behind = servers_behind(one.host, one.file, at, find_file(config, environ=os.environ), one.projects)
        if behind.names or behind.usable(one.others)[1]:
            say(f"{one.host.title}: {_way(one.host, one.others, behind, config)}")
        if one.own and (twice := behind.twice(one.others)) is not None:
            remark(f"warning: {one.host.title}: {twice}")
        _say_projects(one, behind)
        if one.problem is not None:
            complain(str(one.problem))
    return DONE


def _shown(file: PurePath, at: Machine) -> str:
    """Return a path, shortened on a terminal, where room is scarce."""
    home = at.path(at.home)
    return f"~/{file.relative_to(home)}" if sys.stdout.isatty() and file.is_relative_to(home) else str(file)


def _say_projects(one: RegistrationStatus, behind: ServersBehind, *, elsewhere: bool = False) -> None:
    """Print the servers that a host has for single projects; `elsewhere`: only those in files of the projects."""
    for project in one.projects:
        is_apart = project.file != one.file
        if not elsewhere or is_apart:
            names = list_names([*project.own, *project.others])
            say(f"{one.host.title} also has in {project.folder}: {names} ({project.file})")
            if is_apart and project.others:
                say(f"  {behind.way_of_project(project)}")


def _in_words(one: RegistrationStatus) -> str:
    if one.problem is not None:
        return "file cannot be read"
    if not one.exists:
        return "no file"
    beside = f", beside {counted(len(one.others), 'other server')}" if one.others else ""
    return f"registered{beside}" if one.own else f"not registered{beside.replace('beside ', '')}"
