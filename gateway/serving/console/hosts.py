"""Hosts for the console: who is connected, with which profile and why, and what is known of every host."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from anyio import to_thread
from starlette.requests import Request

from gateway.config.builtin_profiles import load_builtin, load_profiles, measured_names
from gateway.config.schema import Settings
from gateway.core.profiles.host_profiles import PATHS
from gateway.core.profiles.match_profile import find_profile, namesake
from gateway.core.profiles.profile import Profile
from gateway.core.profiles.profile_words import (
    characters,
    clients,
    errors,
    images,
    known_from,
    own_paths,
    pages,
    seen,
    shown,
    structured,
    words_at,
)
from gateway.serving.console.console import Console
from gateway.serving.console.views import View

_LONGEST = 500
ORIGINS = ("builtin", "measured", "own")
COLUMNS = {
    "known_from": "known from",
    "images": "images",
    "audio": "sound",
    "documents": "PDF",
    "links": "links",
    "structured": "structured data",
    "errors": "media of errors",
    "text_limit": "text",
    "result_limit": "whole result",
    "name_limit": "tool names",
    "seen": "images seen",
    "pages": "Apps",
}
"""What the matrix shows of each profile, with its headings."""


class KnownProfiles(NamedTuple):
    """All profiles by name, and the names of those that were measured here."""

    profiles: Mapping[str, Profile]
    measured: frozenset[str]

    def origin(self, profile: Profile) -> str:
        """Return where a profile comes from: one of `ORIGINS`. A variant comes from where its host's does."""
        host = self.variant_of(profile)
        if host is not None:
            return self.origin(self.profiles[host])
        if profile.name in self.measured:
            return "measured"
        return "builtin" if profile.name in load_builtin() else "own"

    def variant_of(self, profile: Profile) -> str | None:
        """Return the host that the profile is a variant of; None if it is not one."""
        host = profile.lineage[0] if profile.lineage else None
        return host if host is not None and profile.name in self.profiles[host].variants else None


async def known_profiles(settings: Settings) -> KnownProfiles:
    """Read all profiles, among them those in the user's own folder."""
    return await to_thread.run_sync(_read, settings)


def _read(settings: Settings) -> KnownProfiles:
    return KnownProfiles(load_profiles(settings), measured_names(settings))


def matrix_row(profile: Profile, known: KnownProfiles) -> dict[str, Any]:
    """Return the row of a profile: its name, title, `origin`, `variant_of` (or null), and a cell for each column."""
    origin = known.origin(profile)
    cells = (
        (known_from(profile, known.profiles) or ("your choice" if origin == "own" else "nothing")).replace("_", " "),
        images(profile),
        shown(profile.audio.show),
        shown(profile.document.show),
        shown(profile.link.show),
        structured(profile),
        errors(profile),
        characters(profile.text.max_chars),
        characters(profile.limits.result_chars),
        f"{profile.tools.name_max:,}",
        seen(profile),
        pages(profile),
    )
    return {
        "name": profile.name,
        "title": profile.title or profile.name,
        "origin": origin,
        "variant_of": known.variant_of(profile),
        **dict(zip(COLUMNS, cells, strict=True)),
    }


async def show_hosts(console: Console, text: str = "", origin: str = "") -> dict[str, Any]:
    """Return the connected `hosts`, as `mcp-gateway status --json` does, the `calibration`, and the matrix.

    `profiles` are its rows that contain `text` and come from `origin`, if given: the user's own first. `of` is the
    number of all profiles, `columns` the headings.
    """
    known = await known_profiles(console.gateway.settings)
    rows = [matrix_row(profile, known) for profile in known.profiles.values()]
    wanted = text.casefold()
    fitting = [
        row
        for row in rows
        if (not origin or row["origin"] == origin)
        and (not wanted or any(wanted in str(cell).casefold() for cell in row.values()))
    ]
    return {
        "hosts": (await console.report())["hosts"],
        "calibration": console.gateway.calibration.progress(),
        "columns": COLUMNS,
        "profiles": sorted(fitting, key=lambda row: _place(row, known)),
        "of": len(rows),
        "chosen": {"text": text, "origin": origin},
    }


def _place(row: Mapping[str, Any], known: KnownProfiles) -> tuple[bool, str, bool, str]:
    """The user's own first, then by title; variants after their host."""
    host = row["variant_of"]
    title = known.profiles[host].title if host else str(row["title"])
    return row["origin"] == "builtin", title.casefold(), host is not None, str(row["title"])


def show_profile(name: str, known: KnownProfiles) -> dict[str, Any]:
    """Return a profile: what it is for, what it extends, its variants, and its values with their evidence.

    `own` are the values in which it differs from what it extends, `inherited` all others, by the table that they are
    in. Raises ProfileError if there is none of this name.
    """
    profile = find_profile(known.profiles, name)
    parent = known.profiles[profile.lineage[0]] if profile.lineage else None
    own = own_paths(profile, known.profiles, PATHS)
    inherited: dict[str, list[dict[str, Any]]] = {}
    for path in PATHS:
        if path not in own:
            table = path.rpartition(".")[0]
            inherited.setdefault(table or "general", []).append(_value(profile, path, parent))
    return {
        **matrix_row(profile, known),
        "about": " ".join(profile.about.split()),
        "chosen_for": clients(profile, known.profiles),
        "not_for": namesake(known.profiles, profile.name),
        "lineage": [{"name": each, "title": known.profiles[each].title} for each in profile.lineage],
        "variants": [
            {"name": each, "title": known.profiles[each].title, "models": list(models)}
            for each, models in profile.variants.items()
        ],
        "own": [_value(profile, path, parent) for path in own],
        "inherited": inherited,
    }


def _value(profile: Profile, path: str, parent: Profile | None) -> dict[str, Any]:
    """Return a value in words, that of the parent if it differs, and the evidence, null if there is none."""
    value, evidence = words_at(profile, path), profile.evidence.get(path)
    before = None if parent is None else words_at(parent, path)
    return {
        "path": path,
        "value": value,
        "parent_value": before if before != value else None,
        "evidence": None if evidence is None else evidence.model_dump(mode="json"),
    }


async def _hosts(console: Console, request: Request) -> Mapping[str, Any]:
    query = request.query_params
    origin = query.get("origin", "")
    return await show_hosts(console, query.get("text", "")[:_LONGEST], origin if origin in ORIGINS else "")


async def _profile(console: Console, request: Request) -> Mapping[str, Any]:
    known = await known_profiles(console.gateway.settings)
    return await to_thread.run_sync(show_profile, request.path_params["name"], known)


VIEWS = (View("/hosts", "hosts.html", _hosts, "hosts", "Hosts"),)
PROFILE_VIEWS = (View("/hosts/{name:path}", "profile.html", _profile, "hosts"),)
"""After those whose paths begin with a name."""
