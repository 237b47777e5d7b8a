"""Editing a profile of the user's own, with the effect shown on a real call before anything is written."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

from anyio import to_thread
from starlette.requests import Request

from gateway.config.builtin_profiles import load_profiles
from gateway.core.model.json_values import as_list, as_object
from gateway.core.profiles.match_profile import find_profile
from gateway.core.profiles.profile import Profile
from gateway.core.profiles.profile_texts import changed_values
from gateway.errors import GatewayError, InvalidRequest
from gateway.hosts.config_files.edit_profile import (
    EditedProfile,
    edit_profile,
    is_own,
    profile_in_configuration,
    suggested_name,
)
from gateway.hosts.simulators.hosts import SIMULATORS
from gateway.serving.console.calls import call_row, viewed_call
from gateway.serving.console.console import Console
from gateway.serving.console.profile_fields import profile_fields
from gateway.serving.console.shown_difference import shown_difference
from gateway.serving.console.submitted import submitted
from gateway.serving.console.views import View
from gateway.telemetry.call_history import CallHistory, PastCall

_CALLS = 40
_LOOKED_AT = 2_000
_LOOKED_INTO = 10
_MEDIA = frozenset({"image", "audio", "resource"})


def calls_to_show(history: CallHistory) -> list[PastCall]:
    """Return the newest calls whose results are kept; none of those is read."""
    looked_at = islice(history.newest_first(), _LOOKED_AT)
    return list(islice((call for call in looked_at if call.has_result), _CALLS))


def call_to_begin_with(calls: list[PastCall]) -> int | None:
    """Return the number of the newest call with media, or else of the newest; None if there is none.

    Blocks: only the newest few are looked into.
    """
    with_media = next((call for call in calls[:_LOOKED_INTO] if _has_media(call)), None)
    first = with_media or next(iter(calls), None)
    return None if first is None else first.number


def _has_media(call: PastCall) -> bool:
    blocks = as_list(as_object(call.result).get("content"))[:50]
    return any(as_object(block).get("type") in _MEDIA for block in blocks)


def simulated_host(profile: Profile) -> str | None:
    """Return the simulated host whose model gets what is sent with this profile, if there is one."""
    return next((name for name in (profile.name, *profile.lineage) if name in SIMULATORS), None)


async def _edit(console: Console, request: Request) -> Mapping[str, Any]:
    settings, config, name = console.gateway.settings, console.operation.config, request.path_params["name"]
    profiles = await to_thread.run_sync(load_profiles, settings)
    profile = find_profile(profiles, name)
    is_users = await to_thread.run_sync(is_own, settings, config, profile.name)
    parent = profiles[profile.lineage[0]] if is_users else profile
    calls = calls_to_show(console.history)
    return {
        "name": profile.name,
        "title": profile.title or profile.name,
        "is_own": is_users,
        "extends": parent.name,
        "file": str(config) if profile_in_configuration(settings, config, profile.name) else None,
        "new_name": None if is_users else suggested_name(profile.name),
        "fields": profile_fields(profile, parent),
        "calls": [call_row(call) for call in calls],
        "call": await to_thread.run_sync(call_to_begin_with, calls),
    }


async def _effect(console: Console, request: Request) -> Mapping[str, Any]:
    """Return what the edited profile makes of a call, as `seen`, and the difference that saving would write."""
    given = await _given(request)
    edited = await _edited(console, request, given)
    number = given.get("call", "")
    seen = None
    if number:
        if not (number.isascii() and number.isdecimal() and len(number) < 16):
            raise InvalidRequest("there is no such call")
        call = viewed_call(console, await console.call(int(number)))
        host = simulated_host(edited.profile)
        seen = await console.views.view_profile(call, edited.profile, host or edited.profile.name)
    return {"of": request.path_params["name"], **await _to_write(console, edited), "seen": seen}


async def _save(console: Console, request: Request) -> Mapping[str, Any]:
    """Write a profile whose difference was seen into its file, and use it from now on; `problem` says why it is not."""
    given = await _given(request)
    edited = await _edited(console, request, given)
    if not edited.is_changed:
        raise InvalidRequest("nothing is changed yet", remedy="change a value first")
    edited.check_folder()
    if given.get("mark") != edited.mark:
        raise InvalidRequest(
            f"{edited.path} would not become what was shown, so nothing was written",
            remedy="look at the change once more: /effect shows it, with its mark",
        )
    written = await _to_write(console, edited)
    path = await to_thread.run_sync(edited.write)
    problem = None
    try:
        if edited.is_configuration:
            await console.operation.reload()
        else:
            console.gateway.apply(console.gateway.settings)
    except GatewayError as error:
        problem = str(error)
    return {**written, "path": str(path), "problem": problem}


async def _given(request: Request) -> Mapping[str, str]:
    return (await submitted(request)).texts()


async def _edited(console: Console, request: Request, given: Mapping[str, str]) -> EditedProfile:
    settings, config = console.gateway.settings, console.operation.config

    def edited() -> EditedProfile:
        profile = find_profile(load_profiles(settings), request.path_params["name"])
        return edit_profile(settings, config, profile.name, changed_values(profile, given), given.get("name", ""))

    return await to_thread.run_sync(edited)


async def _to_write(console: Console, edited: EditedProfile) -> dict[str, Any]:
    """Return what is to be written: `path`, `lines` of the difference, and its `mark`; `lines` is empty for nothing.

    `path` is null if there is no folder for the user's own profiles. `clients` are those that it is chosen for.
    """
    lines: list[dict[str, str]] = []
    if edited.is_changed:
        lines = await to_thread.run_sync(
            shown_difference, console.gateway.settings, edited.before, edited.text, edited.path
        )
    return {
        "name": edited.name,
        "path": None if edited.path is None else str(edited.path),
        "is_configuration": edited.is_configuration,
        "lines": lines,
        "mark": edited.mark if lines else None,
        "clients": [match.model_dump(exclude_none=True) for match in edited.source.match],
    }


VIEWS = (
    View("/edit/{name:path}", "edit.html", _edit, "hosts"),
    View("/effect/{name:path}", "effect.html", _effect, "hosts", method="POST"),
    View("/save/{name:path}", "saved.html", _save, "hosts", method="POST"),
)
