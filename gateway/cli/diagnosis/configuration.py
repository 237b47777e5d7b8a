"""Examine the configuration and its profiles: where they were found, their errors, and what is usable of them."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from gateway.cli.diagnosis.check_context import CheckContext
from gateway.cli.diagnosis.findings import CheckResult, list_names
from gateway.cli.diagnosis.start_faults import start_faults
from gateway.config.builtin_profiles import builtin_profiles, load_profiles
from gateway.config.find_config import FILE_NAME, config_candidates
from gateway.config.load_settings import LoadedSettings, load_settings
from gateway.config.project_file import project_file_here, read_project_file
from gateway.config.schema import Settings
from gateway.config.toolset_settings import which_toolset
from gateway.core.fact_words import counted, plain
from gateway.core.profiles.match_profile import find_profile, known_name
from gateway.core.profiles.profile import Profile
from gateway.errors import ConfigError, ConfigFileMissing, ConfigMalformed, GatewayError, ProfileError
from gateway.hosts.config_files.hosts import HOSTS
from gateway.hosts.config_files.machine import Machine

ABOUT = "configuration"
EVERY_HOST = "all"
"""In place of a host's name: every known host, whether it is on this machine or not."""
_PROFILES = "profiles"
_PROJECT = "project"

_REMEDIES: Mapping[type[GatewayError], str] = {
    ConfigFileMissing: f"write it, or leave --config out: ./{FILE_NAME} and the user's config folder are looked at",
    ConfigMalformed: (
        "fix the file at this line and column; often a comma, a quote or a bracket is missing just before"
    ),
}
"""Remedies for errors that have none of their own."""
_REMEDY = "fix it there; `mcp-gateway config keys` lists every key"


def examine_configuration(
    config: Path | None, environ: Mapping[str, str], host: str | None
) -> tuple[CheckContext, list[CheckResult]]:
    """Return the context for the other checks, and the findings on the configuration: with a problem, it is unusable.

    Raises:
        ProfileError: `host` names neither a profile nor a host, and is not EVERY_HOST.
    """
    findings: list[CheckResult] = []
    loaded = LoadedSettings(Settings(), None)
    try:
        loaded = load_settings(config, environ=environ)
        findings.extend(_contents(loaded))
    except ConfigError as error:
        findings.extend(_problems(ABOUT, error))
    settings, profiles = loaded.settings, builtin_profiles()
    try:
        profiles = load_profiles(settings)
        findings.extend(_profiles(settings, profiles))
    except (ConfigError, ProfileError) as error:
        findings.extend(_problems(_PROFILES, error))
        # The upstreams can be examined without the profiles.
        gateway = settings.gateway.model_copy(update={"profile": None})
        settings = settings.model_copy(update={"profiles": {}, "gateway": gateway})
    if host is None:
        here = _here(settings, profiles, environ)
        findings.append(_judged_for(here, profiles))
        return CheckContext(settings, loaded.path, profiles, environ, here=here), findings
    if host.casefold() == EVERY_HOST:
        return CheckContext(settings, loaded.path, profiles, environ), findings
    known = known_name(HOSTS, host)
    own = (HOSTS[known].profile or known) if known is not None else host
    name = "default" if known is not None and own not in profiles else find_profile(profiles, own).name
    return CheckContext(settings, loaded.path, profiles, environ, name), findings


def _here(settings: Settings, profiles: Mapping[str, Profile], environ: Mapping[str, str]) -> frozenset[str]:
    """Return the profiles of hosts with a configuration file here, the user's own, and the one for unknown hosts."""
    if settings.gateway.profile is not None:
        return frozenset({find_profile(profiles, settings.gateway.profile).name})
    at = replace(Machine.here(), environ=environ)
    there = {
        host.profile or name
        for name, host in HOSTS.items()
        if any(os.path.exists(place.path) for place in host.places(at))
    }
    own = {name for name in profiles if name not in builtin_profiles()}
    return frozenset({"default", *own, *there.intersection(profiles)})


def _judged_for(here: frozenset[str], profiles: Mapping[str, Profile]) -> CheckResult:
    titles = [profiles[name].title for name in profiles if name in here and name != "default"]
    unknown = ["unknown clients"] if "default" in here else []
    text = f"tools are judged for {list_names([*titles, *unknown])}"
    return CheckResult(
        _PROFILES, "ok", text, f"mcp-gateway doctor --host {EVERY_HOST} judges them for every known host"
    )


def _contents(loaded: LoadedSettings) -> Iterator[CheckResult]:
    add = "mcp-gateway import takes over what other hosts have, mcp-gateway add adds a server"
    written = 'or write [upstreams.NAME] with command = "..." or url = "..."'
    if loaded.path is None:
        looked = " and ".join(str(place) for place in config_candidates())
        begin = f"{add}, mcp-gateway init begins a new file; {written}"
        yield CheckResult(ABOUT, "problem", f"there is no configuration: looked for {looked}", begin)
        return
    upstreams = loaded.settings.upstreams
    yield CheckResult(ABOUT, "ok", f"{loaded.path}: {counted(len(upstreams), 'upstream')}")
    here, *others = (place.absolute() for place in config_candidates())
    if loaded.path.absolute() == here and others and others[0].is_file():
        text = f"{others[0]} is used in other folders, and not in this one"
        yield CheckResult(ABOUT, "ok", text, f"mcp-gateway doctor --config {others[0]} examines it")
    if not upstreams:
        yield CheckResult(ABOUT, "problem", "no upstream is configured: there will be no tools", f"{add}; {written}")
    elif not any(upstream.enabled for upstream in upstreams.values()):
        first = next(iter(upstreams))
        text = "no upstream is enabled: there will be no tools"
        yield CheckResult(ABOUT, "problem", text, f"upstreams.{first}.enabled = true")
    for fault in start_faults(loaded.settings):
        yield CheckResult(ABOUT, "problem", f"a gateway would not start: {fault.message}", fault.remedy)
    yield from _permissions(loaded)
    yield from _secret_arguments(loaded.settings)


async def check_project(context: CheckContext) -> Iterable[CheckResult]:
    """Report the toolset of the project here: with one that does not exist, a host on stdio is offered nothing."""
    return list(_project(context.settings))


def _project(settings: Settings) -> Iterator[CheckResult]:
    file = project_file_here() if settings.toolsets else None
    if file is None:
        return
    try:
        name = read_project_file(file)
    except ConfigError as error:
        text = f"{error.message}: hosts on stdio are offered nothing in this folder"
        yield CheckResult(_PROJECT, "problem", text, error.remedy or _REMEDIES.get(type(error), _REMEDY))
        return
    if name in settings.toolsets:
        yield CheckResult(_PROJECT, "ok", f"hosts on stdio get the toolset {name!r} in this folder ({file})")
    elif name is not None:
        text = f"{file}: there is no toolset {plain(name, 80)!r}: hosts on stdio are offered nothing in this folder"
        yield CheckResult(_PROJECT, "problem", text, which_toolset(name, settings.toolsets))


def _secret_arguments(settings: Settings) -> Iterator[CheckResult]:
    """Warn of secrets on command lines, which every user of this machine can see in the list of processes."""
    for name, upstream in settings.upstreams.items():
        if any(secret in argument for secret in upstream.read_secrets for argument in upstream.args):
            text = f"upstreams.{name}.args has a secret, and every user of this machine can see command lines"
            yield CheckResult(ABOUT, "warning", text, "pass it in env, or in a file that the server reads")


def _permissions(loaded: LoadedSettings) -> Iterator[CheckResult]:
    """Warn if other users of this machine can read a token for the gateway in the file."""
    if os.name != "posix" or loaded.path is None:
        return
    try:
        mode = loaded.path.stat().st_mode
        text = loaded.path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return
    named = [token.token for token in loaded.settings.access.tokens.values()]
    holds = any(token in text for token in (loaded.settings.http.token, *named) if token)
    if holds and mode & 0o044:
        text = f"{loaded.path} holds a token, and others on this machine can read it"
        yield CheckResult(ABOUT, "warning", text, f'chmod 600 {loaded.path}, or token = "${{keyring:NAME}}"')


def _profiles(settings: Settings, profiles: Mapping[str, Profile]) -> Iterator[CheckResult]:
    own = [name for name in profiles if name not in builtin_profiles()]
    yours = f", {len(own)} of your own: {list_names(own)}" if own else ""
    yield CheckResult(_PROFILES, "ok", f"{counted(len(profiles) - len(own), 'profile')} built in{yours}")
    if settings.gateway.profile is not None:
        text = f"every host gets the profile {settings.gateway.profile!r}, whatever it is"
        yield CheckResult(_PROFILES, "ok", text, "take gateway.profile out, and each host is recognised")
    if settings.gateway.model is not None:
        text = f"the model behind every host is taken to be {settings.gateway.model!r}"
        yield CheckResult(_PROFILES, "ok", text, "take gateway.model out where hosts have different ones")
    variants = {variant for profile in profiles.values() for variant in profile.variants}
    for name in own:
        if not profiles[name].match and settings.gateway.profile != name and name not in variants:
            text = f"no client gets {name!r} by itself: it matches none"
            remedy = f'profiles.{name}.match = [{{ client_name = "..." }}], or choose it with --profile {name}'
            yield CheckResult(_PROFILES, "warning", text, remedy)


def _problems(about: str, error: GatewayError) -> Iterator[CheckResult]:
    """Yield a finding for each error."""
    for problem in error.problems if isinstance(error, ConfigError) else (error,):
        remedy = problem.remedy or _REMEDIES.get(type(problem), _REMEDY)
        yield CheckResult(about, "problem", problem.message, remedy)
