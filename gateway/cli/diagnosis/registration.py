"""Check the hosts on this machine: whether the gateway is registered in each, and whether the entry would start it."""

import os
import shlex
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from anyio import to_thread

from gateway.cli.diagnosis.check_context import CheckContext
from gateway.cli.diagnosis.findings import CheckResult, list_names
from gateway.config.builtin_profiles import builtin_profiles
from gateway.config.find_config import FILE_VARIABLE, find_file
from gateway.config.toolset_settings import AUTO, which_toolset
from gateway.core.fact_words import counted, plain
from gateway.core.model.caller import Caller
from gateway.core.profiles.match_profile import choose_profile
from gateway.core.profiles.profile import Profile
from gateway.errors import ConfigError, ConfigFileUnreadable, ProfileError
from gateway.hosts.config_files.gateway_entry import NAME
from gateway.hosts.config_files.host_environment import missing_in_host
from gateway.hosts.config_files.host_format import HostFormat
from gateway.hosts.config_files.hosts import HOSTS
from gateway.hosts.config_files.launch_command import Launch, address_of_entry, launch_in
from gateway.hosts.config_files.machine import Machine
from gateway.hosts.config_files.registration_status import ProjectServers, RegistrationStatus, registration_status
from gateway.hosts.config_files.servers_behind import ServersBehind, removal, servers_behind
from gateway.serving.control.gateway_ports import gateway_ports

_REFERENCES = ("$", "{env:", "{file:")
"""Placeholders in a path that only its host can replace (`gateway.hosts.config_files.variables`)."""


async def check_registration(context: CheckContext) -> list[CheckResult]:
    """Check each host that has a configuration file. Hosts without one are not mentioned."""
    return await to_thread.run_sync(lambda: list(_hosts(context)))


def _hosts(context: CheckContext) -> Iterator[CheckResult]:
    at = replace(Machine.here(gateway_ports()), environ=context.environ)
    for host in HOSTS.values():
        own = host.profile or host.name
        if context.host in (None, own if own in context.profiles else "default"):
            one = registration_status(host, at)
            if one.exists or one.problem is not None or one.projects:
                behind = servers_behind(host, one.file, at, context.path, one.projects)
                yield from _host(one, context, behind)
                yield from _projects(one, behind)


def _host(one: RegistrationStatus, context: CheckContext, behind: ServersBehind) -> Iterator[CheckResult]:
    about, title = _about(one.host), one.host.title
    only = f"{_install(one.host, NAME, context)} --only"
    way = behind.way(one.others, _command("import", one.host, context), only)
    if one.problem is not None:
        yield CheckResult(about, "problem", one.problem.message, _mended(one, one.problem))
        return
    if not one.own:
        has = (
            f"{counted(len(one.others), 'server')} of its own: {list_names(one.others)}" if one.others else "no servers"
        )
        text = f"{title} does not have the gateway ({one.file}; {has})"
        usable, unusable = behind.usable(one.others)
        remedy = way if usable else "; ".join(filter(None, (_install(one.host, NAME, context), unusable)))
        yield CheckResult(about, "ok", text, remedy, is_next_step=True)
        return
    for name, entry in one.own.items():
        yield from _entry(one, name, entry, context)
    if len(one.own) > 1:
        text = f"the gateway is registered more than once ({list_names(one.own)}): every tool is offered as often"
        spare = next(name for name in reversed(list(one.own)) if name != NAME)
        remedy = f"mcp-gateway uninstall {one.host.name} --name {shlex.quote(spare)}"
        yield CheckResult(about, "warning", text, remedy)
    if one.others:
        text = f"beside the gateway {title} has {counted(len(one.others), 'other server')}: {list_names(one.others)}"
        twice = behind.twice(one.others)
        yield CheckResult(about, "warning" if twice else "ok", f"{text}; {twice}" if twice else text, way)


def _projects(one: RegistrationStatus, behind: ServersBehind) -> Iterator[CheckResult]:
    """Name the servers that the host has for single projects, which are there beside the gateway."""
    for project in one.projects:
        if project.own:
            text = (
                f"the gateway is registered in {project.file} as {list_names(project.own)}, for {project.folder} alone"
            )
            yield CheckResult(_about(one.host), "ok", text)
        if project.others:
            has = f"{counted(len(project.others), 'server')} for {project.folder} alone"
            text = f"{one.host.title} has {has}: {list_names(project.others)} ({project.file})"
            is_apart = project.file != one.file
            remedy = behind.way_of_project(project) if is_apart else _way_of_local(one, project, behind)
            yield CheckResult(_about(one.host), "ok", text, remedy, is_next_step=True)


def _way_of_local(one: RegistrationStatus, project: ProjectServers, behind: ServersBehind) -> str:
    """Describe how servers get behind the gateway that are in the user's file for one project."""
    usable, unusable = behind.usable(project.others, project.folder)
    if unusable:
        return "; ".join([*([_way_of_local(one, replace(project, others=usable), behind)] if usable else []), unusable])
    new = [name for name in project.others if (project.folder, name) not in behind.in_projects]
    if not new:
        out = "; ".join(map(removal, project.others))
        return f"behind the gateway already: in that folder, {out} takes it out of {one.host.title}"
    return f"mcp-gateway import {one.host.name} puts {'it' if len(new) == 1 else 'them'} behind the gateway"


def _entry(
    one: RegistrationStatus, name: str, entry: Mapping[str, Any], context: CheckContext
) -> Iterator[CheckResult]:
    """Check one registration: report its problems, or that there are none, and the profile that its host gets."""
    about = _about(one.host)
    launch = launch_in(entry)
    if launch is None:
        address = address_of_entry(entry)
        yield CheckResult(about, "ok", f"{one.host.title} calls the gateway at {address}, as {name!r} ({one.file})")
        # The path chooses a profile and a toolset; the configuration can only be the one examined here.
        _, *chosen = urlsplit(address).path.strip("/").split("/")
        in_path = chosen[0] if chosen and chosen[0] != AUTO else None
        yield from _profile(one.host, name, context, in_path=in_path)
        yield from _toolset(one.host, name, chosen[1] if len(chosen) > 1 else None, context)
        return
    profile = _option(launch.args, "--profile")
    toolset = _option(launch.args, "--toolset")
    again = _install(one.host, name, context, profile, toolset, shared="--shared" in launch.args)
    broken = [
        *_program(one.host, launch, name, again, context),
        *_configuration(one.host, launch, name, again, context),
        *_toolset(one.host, name, toolset, context),
    ]
    if not any(finding.level == "problem" for finding in broken):
        text = f"the gateway is registered in {one.host.title} as {name!r} ({one.file})"
        yield CheckResult(about, "ok", text)
    yield from broken
    if entry.get("disabled") is True or entry.get("enabled") is False:
        yield CheckResult(about, "warning", f"{name!r} is disabled there", f"enable it in {one.host.title}")
    if not broken:
        yield from _profile(one.host, name, context, configured=profile)
        yield from _variables(one.host, launch, name, context)


def _program(host: HostFormat, launch: Launch, name: str, again: str, context: CheckContext) -> Iterator[CheckResult]:
    if _is_reference(launch.command, host):
        return
    found = shutil.which(launch.command, path=launch.env.get("PATH") or context.environ.get("PATH"))
    if found is None:
        there = os.path.isabs(launch.command) and os.path.exists(launch.command)
        what = "may not be run" if there else "is not there"
        yield CheckResult(_about(host), "problem", f"{name!r} starts {launch.command}, which {what}", again)
    elif (interpreter := _interpreter(Path(found))) is not None and not os.path.exists(interpreter):
        text = f"{name!r} starts {launch.command}, whose interpreter {interpreter} is not there"
        yield CheckResult(_about(host), "problem", text, again)


def _variables(host: HostFormat, launch: Launch, name: str, context: CheckContext) -> Iterator[CheckResult]:
    """Report variables that the configuration needs and that the host may not pass to the gateway."""
    if context.path is None:
        return
    try:
        missing = missing_in_host(context.path, launch.env)
    except ConfigError:  # reported for the configuration itself
        return
    remedy = f"{_install(host, name, context)} {missing.options(context.environ)}"
    for sentence in missing.sentences(context.path, host.title):
        yield CheckResult(_about(host), "warning", sentence, remedy)


def _interpreter(script: Path) -> str | None:
    """Return the interpreter in a script's first line; None if the file is not a script or cannot be read."""
    try:
        with script.open("rb") as file:
            line = file.readline(1024)
    except OSError:
        return None
    words = line[2:].decode("utf-8", "replace").split() if os.name == "posix" and line.startswith(b"#!") else []
    return words[0] if words else None


def _configuration(
    host: HostFormat, launch: Launch, name: str, again: str, context: CheckContext
) -> Iterator[CheckResult]:
    """Check that the configuration in the entry exists, and that it is the one being examined."""
    given = _option(launch.args, "--config") or launch.env.get(FILE_VARIABLE)
    if given is None:
        text = f"{name!r} names no configuration: which one it gets depends on where it is started"
        yield CheckResult(_about(host), "warning", text, again)
    elif _is_reference(given, host):
        return
    elif not os.path.isabs(given):
        text = f"{name!r} names its configuration as {given}, which depends on the folder that it is started in"
        yield CheckResult(_about(host), "warning", text, again)
    elif not os.path.isfile(given):
        first = "" if context.path is not None else "mcp-gateway init writes a configuration; then "
        yield CheckResult(
            _about(host), "problem", f"{name!r} names the configuration {given}, which is not there", first + again
        )
    elif context.path is not None and os.path.realpath(given) != os.path.realpath(context.path):
        text = f"{name!r} uses a different configuration from the one examined here: {given}"
        remedy = f"mcp-gateway doctor --config {shlex.quote(given)} examines that one; {again} changes it"
        yield CheckResult(_about(host), "warning", text, remedy)


def _profile(
    host: HostFormat, name: str, context: CheckContext, *, configured: str | None = None, in_path: str | None = None
) -> Iterator[CheckResult]:
    """Report the profile that the host gets, judged by its client name if that is known."""
    called, settings = _client_name(host), context.settings.gateway
    try:
        caller = Caller(client_name=called, profile=in_path)
        choice = choose_profile(context.profiles, caller, configured or settings.profile, settings.model)
    except ProfileError as error:
        text = f"{name!r} asks for a profile that does not exist: {error.message}"
        yield CheckResult(
            _about(host), "problem", text, f"{error.remedy}; {_install(host, name, context)} leaves it to the host"
        )
        return
    own = host.profile or host.name
    if host.nameless and own in context.profiles and (in_path, configured, settings.profile) == (None, None, None):
        text = f"{host.title} gets the profile {choice.profile.name}, because its name does not tell it from others"
        yield CheckResult(_about(host), "warning", text, f"{_install(host, name, context)} chooses {own} in its entry")
        return
    because = choice.because
    if in_path is None and configured is not None:
        because = "its entry sets it with --profile"
    elif in_path is None and context.settings.gateway.profile is None and called is None:
        because = f"none is built in for {host.title}; one of your own may match its name"
    yield CheckResult(_about(host), "ok", f"{host.title} gets the profile {choice.profile.name}: {because}")
    yield from _patience(host, choice.profile, context)


def _toolset(host: HostFormat, name: str, toolset: str | None, context: CheckContext) -> Iterator[CheckResult]:
    """Report a toolset that the entry chooses and that does not exist."""
    known = context.settings.toolsets
    if toolset is None or toolset in known:
        return
    text = f"{name!r} asks for the toolset {plain(toolset, 80)!r}, which does not exist"
    yield CheckResult(_about(host), "problem", text, which_toolset(toolset, known))


def _patience(host: HostFormat, profile: Profile, context: CheckContext) -> Iterator[CheckResult]:
    """Warn of upstreams whose configured time limit for a call is longer than the host waits."""
    seconds = profile.wait.call
    if seconds is None or profile.wait.progress_resets:
        return
    if profile.wait.early_answer is not None and context.settings.long_calls.enabled:  # no call is lost
        return
    longer = [
        name
        for name, upstream in context.settings.upstreams.items()
        if "call" in upstream.timeout.model_fields_set and upstream.timeout.call > seconds
    ]
    if longer:
        text = f"{host.title} gives up on calls after {seconds:g} s, but more time is set for {list_names(longer)}"
        remedy = (
            f"raise the limit in {host.title}, if it has one; upstreams.{longer[0]}.timeout.call has no effect on that"
        )
        yield CheckResult(_about(host), "warning", text, remedy)


def _client_name(host: HostFormat) -> str | None:
    """Return the host's client name, from its own built-in profile; None if it has none."""
    profile = builtin_profiles().get(host.profile or host.name)
    globs = [match.client_name for match in profile.match if match.client_name is not None] if profile else []
    return globs[0].rstrip("*") if globs else None


def _option(args: tuple[str, ...], name: str) -> str | None:
    """Return the value of an option, given as `--name value` or `--name=value`."""
    for place, word in enumerate(args):
        if word == name and place + 1 < len(args):
            return args[place + 1]
        if word.startswith(f"{name}="):
            return word.removeprefix(f"{name}=")
    return None


def _install(
    host: HostFormat,
    name: str,
    context: CheckContext,
    profile: str | None = None,
    toolset: str | None = None,
    *,
    shared: bool = False,
) -> str:
    """Return the command that registers the gateway with the configuration being examined."""
    more = [*(["--name", name] if name != NAME else []), *(["--shared"] if shared else [])]
    command = _command("install", host, context, *more)
    chosen = {"--profile": profile, "--toolset": toolset}
    given = [word for option, value in chosen.items() if value is not None for word in (option, value)]
    return f"{command} {shlex.join(given)}" if given else command


def _command(command: str, host: HostFormat, context: CheckContext, *more: str) -> str:
    """Return a command for a host and the configuration being examined."""
    words = ["mcp-gateway", command, host.name, *more]
    if context.path is not None and context.path != find_file(None, environ=context.environ):
        words += ["--config", str(context.path)]
    return shlex.join(words)


def _about(host: HostFormat) -> str:
    return f"host {host.name}"


def _mended(one: RegistrationStatus, error: ConfigError) -> str:
    if isinstance(error, ConfigFileUnreadable):
        return f"make {one.file} a file that you can read"
    return f"fix it there: {one.host.title} may not read it either; then mcp-gateway install {one.host.name}"


def _is_reference(path: str, host: HostFormat) -> bool:
    return host.variables != "none" and any(mark in path for mark in _REFERENCES)
