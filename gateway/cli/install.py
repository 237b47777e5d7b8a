"""`mcp-gateway install` and `uninstall`: the gateway in a host's own configuration file."""

from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.failing import DONE, complain, refuse
from gateway.cli.started import AsJson, ConfigFile
from gateway.cli.terminal import remark, say, say_json, say_table
from gateway.config.builtin_profiles import load_profiles
from gateway.config.documents import read_document
from gateway.config.expansion import expand
from gateway.config.loading import PYTHON_VARIABLE, load_settings
from gateway.core.matching import find
from gateway.errors import ConfigError
from gateway.registration.backups import Backups
from gateway.registration.files import as_text, read_bytes
from gateway.registration.hosts import HOSTS, Host, find_host
from gateway.registration.importing import identity, known_to
from gateway.registration.installing import NAME
from gateway.registration.launching import lives_in_cache, own_launch
from gateway.registration.registering import Registered, host_document, register, unregister, user_file
from gateway.registration.servers import read_servers
from gateway.registration.standing import Standing, standing
from gateway.registration.surroundings import Surroundings

HostName = Annotated[str | None, typer.Argument(metavar="HOST", help=f"One of {', '.join(HOSTS)}.")]
HostFile = Annotated[
    Path | None, typer.Option("--file", metavar="FILE", help="Another file of that host, as a project's.")
]
EntryName = Annotated[str, typer.Option("--name", metavar="NAME", help="What the gateway is called there.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the change as a diff, and change nothing.")]


def install(
    host: HostName = None,
    config: ConfigFile = None,
    profile: Annotated[
        str | None, typer.Option("--profile", metavar="NAME", help="The profile, in place of recognising the host.")
    ] = None,
    only: Annotated[bool, typer.Option("--only", help="Take every other server out of that file.")] = False,
    file: HostFile = None,
    name: EntryName = NAME,
    dry_run: DryRun = False,
    listing: Annotated[
        bool, typer.Option("--list", help="Show the hosts, their files, and who has the gateway.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Register the gateway in a host; its other servers stay, unless --only."""
    at = Surroundings.here()
    if listing:
        return _list(at, as_json)
    if as_json:
        refuse("--json goes with --list")
    if host is None:
        refuse("name a host, or use --list")
    known = find_host(host)
    configuration = _configuration(config, profile)
    target = file.absolute() if file is not None else user_file(known, at)
    launch = own_launch(configuration, profile)
    lost = _not_behind(known, target, at, configuration) if only else []
    done = register(known, target, launch, Backups.of_user(), name=name, only=only, dry_run=dry_run)
    if dry_run:
        say(done.diff or f"{target}: nothing to change")
        return DONE
    _say_registered(done, known, name)
    _say_others(done, known, lost)
    for problem in _needed_variables(configuration):
        remark(f"warning: {problem} where {known.title} does not have it: write its value into {configuration}")
    if lives_in_cache():
        remark("warning: this gateway was started with uvx, and goes when uv's cache is cleaned: `uv tool install` it")
    return DONE


def uninstall(
    host: Annotated[str, typer.Argument(metavar="HOST", help=f"One of {', '.join(HOSTS)}.")],
    file: HostFile = None,
    name: EntryName = NAME,
    dry_run: DryRun = False,
) -> int:
    """Take the gateway out of a host: its file is again what it was, whatever else was changed meanwhile stays."""
    known = find_host(host)
    target = file.absolute() if file is not None else user_file(known, Surroundings.here())
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
        say(f"{target}: the gateway's entry is taken out; the file was changed by others since it was registered")
        if done.backup is not None:
            say(f"what it was before is kept in {done.backup}")
    return DONE


def _configuration(asked: Path | None, profile: str | None) -> Path:
    """The configuration that the host will start the gateway with: it has to be in order now."""
    loaded = load_settings(asked)
    if loaded.path is None:
        remedy = "`mcp-gateway init` writes one, `mcp-gateway import` one with the servers of your hosts"
        raise ConfigError("there is no configuration to register", remedy=remedy)
    profiles = load_profiles(loaded.settings)
    if profile is not None:
        find(profiles, profile)
    return loaded.path.absolute()


def _say_registered(done: Registered, host: Host, name: str) -> None:
    if not done.diff:
        say(f"{done.file}: {host.title} has the gateway already, as {name!r}")
        return
    say(f"{done.file}: the gateway is registered in {host.title} as {name!r} ({host.after})")
    if done.backup is not None:
        say(f"what it was before is kept in {done.backup}; `mcp-gateway uninstall {host.name}` gives it back")


def _say_others(done: Registered, host: Host, lost: list[str]) -> None:
    """What becomes of the host's other servers, and which of them the gateway does not have."""
    beside, out = done.installation.beside, done.installation.taken_out
    if beside:
        say(f"its other servers stay beside it: {', '.join(beside)}")
        say(f"`mcp-gateway import {host.name}` puts them behind the gateway; then --only takes them out here")
    if out:
        say(f"taken out: {', '.join(out)}")
    if lost:
        names = ", ".join(lost)
        remark(f"warning: not behind the gateway: {names} (`mcp-gateway uninstall {host.name}` brings them back)")


def _needed_variables(configuration: Path) -> list[str]:
    """What is wrong where no environment variable is set, as in a desktop program."""
    _, problems = expand(read_document(configuration), {PYTHON_VARIABLE: ""})
    return list(dict.fromkeys(problem.what for problem in problems))


def _not_behind(host: Host, file: Path, at: Surroundings, configuration: Path) -> list[str]:
    """The servers in the host's file that the configuration has no equal of."""
    if configuration.suffix.lower() == ".json":
        return []
    known = known_to(as_text(read_bytes(configuration), configuration), str(configuration))
    document, _ = host_document(host, file)
    servers = read_servers(document, host, at)
    return [
        server.name
        for server in servers
        if not server.own and not server.project and (server.upstream is None or identity(server.upstream) not in known)
    ]


def _list(at: Surroundings, as_json: bool) -> int:
    hosts = [standing(host, at) for host in HOSTS.values()]
    if as_json:
        say_json([one.to_json() for one in hosts])
        return DONE
    rows = [(one.host.name, one.host.title, _in_words(one), str(one.file)) for one in hosts]
    say_table(("host", "", "the gateway", "file"), rows)
    for one in hosts:
        if one.problem is not None:
            complain(str(one.problem))
    return DONE


def _in_words(one: Standing) -> str:
    if one.problem is not None:
        return "file cannot be read"
    if not one.exists:
        return "no file"
    beside = f", beside {len(one.others)} other servers" if one.others else ""
    return f"registered{beside}" if one.own else f"not registered{beside.replace('beside ', '')}"
