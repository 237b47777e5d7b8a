"""Choosing the profile for a client: an explicit choice, a match on what the client says it is, or the default.

Pure. Clients name themselves in clientInfo (`initialize`, or `_meta` of every request from 2026-07-28 on); the name is
good evidence but not exact, so it is normalised and matched with shell globs.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from gateway.core.model.apps_extension import undeclared
from gateway.core.model.caller import Caller
from gateway.core.near_names import which_name
from gateway.core.profiles.client_names import LOOKED_AT, normalise_client_name, separated
from gateway.core.profiles.profile import Match, Profile
from gateway.errors import ProfileError

__all__ = [
    "LOOKED_AT",
    "Choice",
    "Specificity",
    "able",
    "choose_profile",
    "find_profile",
    "glob_of",
    "header_matches",
    "headers_seen",
    "known_name",
    "namesake",
    "normalise_client_name",
    "specificity",
]

_WILD = re.compile(r"\*|\?|\[[^\]]*\]")


@dataclass(frozen=True)
class Choice:
    """The profile in force for a caller, and the reason in one sentence."""

    profile: Profile
    because: str


@dataclass(frozen=True, order=True)
class Specificity:
    """How closely a Match fits, best first: a name without wildcards, then the longer literal part, then the position.

    `position` is the profile's index among all: the later of two equally close ones wins, so that users' profiles,
    which come after the built-in ones, can override them.
    """

    exact: bool
    literal: int
    conditions: int
    position: int


def choose_profile(
    profiles: Mapping[str, Profile], caller: Caller, configured: str | None, model: str | None = None
) -> Choice:
    """Return the profile for `caller`, not yet narrowed to its revision (see `host_profiles.narrow`).

    It is the first that exists of `caller.profile` (flag, path, header), `configured` (the configuration's
    gateway.profile), a Match on the clientInfo name, a Match on the User-Agent alone, and `default`. If that profile
    has a variant for the model behind the host, the variant is used: the model is `model` (the configuration's
    gateway.model), or else `caller.model`.

    Raises:
        ProfileError: an explicit choice names no profile; the remedy names the most similar one.
    """
    behind = caller.model if model is None else model
    names = names_of_model(behind or "")
    choice = _host(profiles, caller, configured, names)
    variant = _variant(choice.profile, names)
    if behind is None or variant is None:
        return choice
    source = "gateway.model" if model is not None else "as the host reports"
    because = f"{choice.because}, and the model behind it is {behind[:LOOKED_AT]!a} ({source})"
    return Choice(find_profile(profiles, variant), because)


def _host(profiles: Mapping[str, Profile], caller: Caller, configured: str | None, models: tuple[str, ...]) -> Choice:
    """Choose the profile of the host, regardless of its variants."""
    if caller.profile is not None:
        return Choice(find_profile(profiles, caller.profile), "it was chosen explicitly")
    if configured is not None:
        return Choice(find_profile(profiles, configured), "the configuration sets it for every host (gateway.profile)")
    if caller.client_name is not None:
        name = normalise_client_name(caller.client_name)
        if named := _closest(profiles, _by_name(profiles, name, caller, models)):
            sends = next((one.header for one in named.match if one.header and _header_fits(one, caller)), None)
            return Choice(named, f"the client calls itself {name!a}" + (f" and sends {sends}" if sends else ""))
    agent = caller.user_agent
    if agent is not None and (found := _closest(profiles, _by_agent(profiles, agent, models))):
        return Choice(found, f"the User-Agent is {agent[:LOOKED_AT]!a}")
    unknown = "the client does not say what it is"
    if caller.client_name is not None:
        unknown = f"no profile matches a client that calls itself {normalise_client_name(caller.client_name)!a}"
    return Choice(find_profile(profiles, "default"), unknown)


def able(caller: Caller, profile: Profile) -> Caller:
    """Return the caller without declared features known to be broken (`features.broken`, `apps.host`)."""
    kept = undeclared(caller.capabilities) if profile.apps.host == "never" else caller.capabilities
    if broken := set(profile.features.broken).intersection(kept):
        kept = {key: value for key, value in kept.items() if key not in broken}
    return caller if kept is caller.capabilities else replace(caller, capabilities=kept)


def find_profile(profiles: Mapping[str, Profile], name: str) -> Profile:
    """Return the profile of this name.

    Raises:
        ProfileError: there is none; the remedy names the most similar one, or all.
    """
    known = known_name(profiles, name)
    if known is None:
        remedy = which_name(name, sorted(profiles))
        raise ProfileError(f"no profile is called {name[:LOOKED_AT]!a}", remedy=remedy)
    return profiles[known]


def namesake(profiles: Mapping[str, Profile], name: str) -> str | None:
    """The profile, another one, of the clients that call themselves as this profile is called: Claude Desktop calls
    itself `claude-ai`, and the profile `claude-ai` is that of the web."""
    found = _closest(profiles, _by_name(profiles, normalise_client_name(name), Caller(), ()))
    return found.name if found is not None and found.name != name else None


def known_name(names: Collection[str], given: str) -> str | None:
    """Return the name that `given` means: the same name, or else one that differs only in case."""
    if given in names:
        return given
    folded = given.casefold()
    return next((name for name in names if name.casefold() == folded), None)


def glob_of(match: Match) -> str | None:
    """Return the glob on the client's name, normalised like the names that it is matched with."""
    return None if match.client_name is None else separated(match.client_name)


def specificity(match: Match, position: int = 0) -> Specificity:
    """Return how closely `match` fits what it matches."""
    glob = glob_of(match)
    literal = len(_WILD.sub("", glob)) if glob is not None else len(match.user_agent or "")
    given = (match.client_name, match.client_version, match.user_agent, match.model, match.header)
    conditions = sum(one is not None for one in given)
    return Specificity(glob is not None and not _WILD.search(glob), literal, conditions, position)


_Found = tuple[Specificity, str]


def _by_name(profiles: Mapping[str, Profile], name: str, caller: Caller, models: tuple[str, ...]) -> Iterator[_Found]:
    for position, profile in enumerate(profiles.values()):
        for match in profile.match:
            glob = glob_of(match)
            if glob is None or not fnmatchcase(name, glob):
                continue
            if match.client_version not in (None, caller.client_version):
                continue
            if not _header_fits(match, caller):
                continue
            if _agent_fits(match, caller.user_agent or "") and _model_fits(match, models):
                yield specificity(match, position), profile.name


def _by_agent(profiles: Mapping[str, Profile], user_agent: str, models: tuple[str, ...]) -> Iterator[_Found]:
    for position, profile in enumerate(profiles.values()):
        for match in profile.match:
            if match.client_name is not None or match.user_agent is None or match.header is not None:
                continue
            if _agent_fits(match, user_agent) and _model_fits(match, models):
                yield specificity(match, position), profile.name


def _agent_fits(match: Match, user_agent: str) -> bool:
    return match.user_agent is None or re.search(match.user_agent, user_agent[:LOOKED_AT]) is not None


def header_matches(profiles: Mapping[str, Profile]) -> tuple[Match, ...]:
    """Return every Match that looks at headers."""
    return tuple(match for profile in profiles.values() for match in profile.match if match.header is not None)


def headers_seen(matches: Collection[Match], caller: Caller) -> tuple[str, ...]:
    """Return the headers of `matches`, as they are written there, that a request of such a client has."""
    if not matches or not caller.headers or caller.client_name is None:
        return ()
    name = normalise_client_name(caller.client_name)
    fitting = (match for match in matches if fnmatchcase(name, glob_of(match) or "*"))
    return tuple(match.header or "" for match in fitting if _header_fits(match, caller))


def _header_fits(match: Match, caller: Caller) -> bool:
    """Whether the request has a header of this name; its value does not matter."""
    if match.header is None:
        return True
    glob = match.header.casefold()
    return any(fnmatchcase(name[:LOOKED_AT].casefold(), glob) for name in caller.headers)


def _model_fits(match: Match, models: tuple[str, ...]) -> bool:
    return match.model is None or any(fnmatchcase(name, match.model.casefold()) for name in models)


def names_of_model(model: str) -> tuple[str, ...]:
    """Return the names to match a model by: with and without its vendor (`openai/gpt-5.5`)."""
    whole = model[:LOOKED_AT].strip().casefold()
    return tuple(dict.fromkeys((whole, whole.rsplit("/", 1)[-1]))) if whole else ()


def _variant(profile: Profile, models: tuple[str, ...]) -> str | None:
    """Return the variant whose glob fits most closely; the earlier of two that fit equally."""
    found = [
        (len(_WILD.sub("", glob)), -place, name)
        for place, (name, globs) in enumerate(profile.variants.items())
        for glob in globs
        if any(fnmatchcase(one, glob.casefold()) for one in models)
    ]
    return max(found)[2] if found else None


def _closest(profiles: Mapping[str, Profile], found: Iterator[_Found]) -> Profile | None:
    best = max(found, default=None)
    return None if best is None else profiles[best[1]]
