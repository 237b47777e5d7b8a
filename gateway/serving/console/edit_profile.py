"""Editing a profile of the user's own, with the effect shown on a real call before anything is written."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from anyio import to_thread
from starlette.requests import Request

from gateway.config.builtin_profiles import builtin_profiles, load_builtin, load_profiles, local_profiles, with_source
from gateway.config.local_profiles import as_toml, local_path, write_local
from gateway.config.schema import Settings
from gateway.core.model.json_values import as_list, as_object
from gateway.core.profiles.host_profiles import set_paths, value_at
from gateway.core.profiles.match_profile import find_profile
from gateway.core.profiles.profile import Fact, Profile, ProfileSource
from gateway.errors import ConfigError, InvalidRequest, ProfileError
from gateway.hosts.simulators.hosts import SIMULATORS
from gateway.serving.console.calls import call_row, viewed_call
from gateway.serving.console.console import Console
from gateway.serving.console.form_fields import read_fields
from gateway.serving.console.profile_fields import changed_values, profile_fields
from gateway.serving.console.views import View
from gateway.telemetry.call_history import CallHistory, PastCall

_CALLS = 40
_LOOKED_AT = 2_000
_NAME = re.compile(r"[a-z0-9]++(?:[-_.][a-z0-9]++)*+")
_LONGEST_NAME = 80
_MEDIA = frozenset({"image", "audio", "resource"})


@dataclass(frozen=True)
class EditedProfile:
    """A profile as it was edited, not yet written: its name, what will be written, and what it becomes."""

    name: str
    source: ProfileSource
    profile: Profile

    @property
    def text(self) -> str:
        """The file that will be written."""
        return as_toml(self.source)


def edit_profile(settings: Settings, name: str, given: Mapping[str, str]) -> EditedProfile:
    """Return what the profile `name` becomes with the values `given`, by dotted path as texts.

    A profile in the user's own folder is changed itself. Of any other one, a profile of the user's own is made, which
    extends it, is chosen for the same clients, and is called `given["name"]`. An empty value is that of the parent.

    Raises:
        ProfileError: there is no such profile, or a value does not fit.
        InvalidRequest: the new name cannot be used.
    """
    profiles, local = load_profiles(settings), local_profiles(settings)
    profile = find_profile(profiles, name)
    changes = changed_values(profile, given)
    source = local.get(profile.name)
    if source is None:
        own_name = _new_name(given.get("name", "") or suggested_name(profile.name), settings, local)
        source = ProfileSource(title=f"{profile.title}, mine", extends=profile.name, match=profile.match)
        parent = profile
    else:
        if source.variant:
            raise InvalidRequest(f"the profile {profile.name!r} has variants", remedy="edit its file by hand")
        own_name, parent = profile.name, profiles[profile.lineage[0]]
    sets = {**set_paths(own_name, ProfileSource(sets=source.sets)), **changes}
    edited = source.model_copy(update={"fact": tuple(_without(source.fact, changes, own_name)), "sets": _given(sets)})
    resolved = with_source(settings, own_name, edited)
    kept = {
        path: _plain(value_at(resolved, path))
        for path in edited.sets
        if path not in changes or value_at(resolved, path) != value_at(parent, path)
    }
    final = edited.model_copy(update={"sets": kept})
    return EditedProfile(own_name, final, resolved)


def suggested_name(name: str) -> str:
    """Return a name for a user's own profile that extends this one."""
    words = "-".join(re.findall(r"[a-z0-9]++", name.casefold()))[: _LONGEST_NAME - 3].strip("-")
    return f"my-{words}" if words else "mine"


def _new_name(name: str, settings: Settings, local: Mapping[str, ProfileSource]) -> str:
    name = name.strip()
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"{name[:_LONGEST_NAME]!r} cannot be the name of a profile",
            remedy="use lower-case letters and digits, with - . or _ between them",
        )
    if name in builtin_profiles() or name in load_builtin() or name in settings.profiles or name in local:
        raise InvalidRequest(f"there is a profile {name!r} already", remedy="edit that one, or give yours another name")
    return name


def _without(facts: tuple[Fact, ...], changes: Mapping[str, Any], name: str) -> Iterator[Fact]:
    """Yield the facts without the values that are changed: their evidence is not that of the new ones."""
    for fact in facts:
        values = set_paths(name, ProfileSource(sets=fact.sets))
        left = {path: value for path, value in values.items() if path not in changes}
        if left:
            yield fact.model_copy(update={"sets": left})


def _given(sets: Mapping[str, Any]) -> dict[str, Any]:
    return {path: value for path, value in sets.items() if value is not None}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def calls_to_show(history: CallHistory) -> list[PastCall]:
    """Return the newest calls whose results are kept."""
    looked_at = islice(history.newest_first(), _LOOKED_AT)
    return list(islice((call for call in looked_at if call.result is not None), _CALLS))


def call_to_begin_with(calls: list[PastCall]) -> int | None:
    """Return the number of the newest call with media, or else of the newest; None if there is none."""
    with_media = next((call for call in calls if _has_media(call)), None)
    first = with_media or next(iter(calls), None)
    return None if first is None else first.number


def _has_media(call: PastCall) -> bool:
    blocks = as_list(as_object(call.result).get("content"))[:50]
    return any(as_object(block).get("type") in _MEDIA for block in blocks)


def simulated_host(profile: Profile) -> str | None:
    """Return the simulated host whose model gets what is sent with this profile, if there is one."""
    return next((name for name in (profile.name, *profile.lineage) if name in SIMULATORS), None)


async def _edit(console: Console, request: Request) -> Mapping[str, Any]:
    settings, name = console.gateway.settings, request.path_params["name"]
    profiles, local = await to_thread.run_sync(lambda: (load_profiles(settings), local_profiles(settings)))
    profile = find_profile(profiles, name)
    is_own = profile.name in local
    parent = profiles[profile.lineage[0]] if is_own else profile
    calls = calls_to_show(console.history)
    return {
        "name": profile.name,
        "title": profile.title or profile.name,
        "is_own": is_own,
        "extends": parent.name,
        "new_name": None if is_own else suggested_name(profile.name),
        "fields": profile_fields(profile, parent),
        "calls": [call_row(call) for call in calls],
        "call": call_to_begin_with(calls),
    }


async def _effect(console: Console, request: Request) -> Mapping[str, Any]:
    """Return what the edited profile makes of a call, as `seen`, and the file that saving would write."""
    edited, given = await _edited(console, request)
    number = given.get("call", "")
    seen = None
    if number:
        if not (number.isascii() and number.isdecimal() and len(number) < 16):
            raise InvalidRequest("there is no such call")
        call = viewed_call(console, console.call(int(number)))
        host = simulated_host(edited.profile)
        seen = await console.views.view_profile(call, edited.profile, host or edited.profile.name)
    return {"of": request.path_params["name"], **_to_write(edited), "seen": seen}


async def _save(console: Console, request: Request) -> Mapping[str, Any]:
    """Write the profile into the user's own folder, and use it from now on."""
    edited, _ = await _edited(console, request)
    if _to_write(edited)["text"] is None:
        raise InvalidRequest("nothing is changed yet", remedy="change a value first")
    path = await to_thread.run_sync(write_local, os.environ, edited.name, edited.source)
    console.gateway.apply(console.gateway.settings)
    return {**_to_write(edited), "path": str(path)}


async def _edited(console: Console, request: Request) -> tuple[EditedProfile, Mapping[str, str]]:
    given = await read_fields(request)
    settings, name = console.gateway.settings, request.path_params["name"]
    return await to_thread.run_sync(edit_profile, settings, name, given), given


def _to_write(edited: EditedProfile) -> dict[str, Any]:
    if not edited.source.sets and not edited.source.fact:
        return {"name": edited.name, "text": None, "path": None, "clients": []}
    try:
        text = edited.text
    except ValueError as error:
        raise ProfileError(f"this cannot be written: {error}") from None
    try:
        path = str(local_path(os.environ, edited.name))
    except ConfigError:  # its effect can be shown all the same
        path = None
    return {
        "name": edited.name,
        "text": text,
        "path": path,
        "clients": [match.model_dump(exclude_none=True) for match in edited.source.match],
    }


VIEWS = (
    View("/edit/{name:path}", "edit.html", _edit, "hosts"),
    View("/effect/{name:path}", "effect.html", _effect, "hosts", method="POST"),
    View("/save/{name:path}", "saved.html", _save, "hosts", method="POST"),
)
