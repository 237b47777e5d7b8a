"""What a case says of a profile, and a profile of a case: one rule for each case that a value of a profile decides."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.core.profiles.matrix import Cell
from gateway.core.profiles.profile import Profile

Values = Mapping[str, Any]
"""Values of a profile, by dotted path."""
_LONG = 30_000
_READS_BOTH = ("beside", "dumped", "if-empty", "replaces-text", "replaces-all")


@dataclass(frozen=True)
class CaseRule:
    """One case and the value that decides it.

    `shows`: whether a host of this profile shows its model all of the case, None where the profile does not say.
    `values`: what a profile has to say instead, by what became of the case; empty where that alone does not tell.
    `path` is the value whose evidence is evidence for the case. `needs_pictures`: where the host does not show a plain
    PNG, the case says nothing more.
    """

    case: str
    path: str
    shows: Callable[[Profile], bool | None]
    values: Callable[[Profile, Cell], Values]
    needs_pictures: bool = False


def _seen(cell: Cell) -> bool:
    return cell.verdict == "seen"


def _takes(media_type: str) -> Callable[[Profile], bool]:
    def shows(profile: Profile) -> bool:
        return profile.image.show == "native" and (not profile.image.types or media_type in profile.image.types)

    return shows


def _type(media_type: str) -> Callable[[Profile, Cell], Values]:
    def values(profile: Profile, cell: Cell) -> Values:
        seen = _seen(cell)
        others = [one for one in profile.image.types if one != media_type]
        return {"image.types": [*others, media_type] if seen else others} if others or seen else {}

    return values


def _pictures(_profile: Profile, cell: Cell) -> Values:
    return {"image.show": "native"} if _seen(cell) else {"image.show": "line", "error.media": "line"}


def _media(kind: str, instead: str) -> Callable[[Profile, Cell], Values]:
    return lambda _profile, cell: {f"{kind}.show": "native" if _seen(cell) else instead}


def _many(profile: Profile) -> bool | None:
    """A limit is often only as many as were tried."""
    return True if profile.image.max_count is None else None


def _embedded(profile: Profile) -> bool | None:
    """To send it as an image is no harm to a host that shows it anyway."""
    if profile.image.show != "native":
        return None
    return None if profile.blob.image_as_image else True


def _structured(profile: Profile) -> bool | None:
    host = profile.structured.host
    return None if host == "unknown" else host in _READS_BOTH


def _beside(profile: Profile) -> bool | None:
    host = profile.structured.host
    return None if host == "unknown" or profile.image.show != "native" else host != "replaces-all"


def _data_alone(_profile: Profile, cell: Cell) -> Values:
    return {} if cell.shown else {"structured.host": "replaces-all", "structured.send": "never"}


RULES: Mapping[str, CaseRule] = {
    rule.case: rule
    for rule in (
        CaseRule("chart", "image.show", _takes("image/png"), _pictures),
        CaseRule("photo", "image.types", _takes("image/jpeg"), _type("image/jpeg"), needs_pictures=True),
        CaseRule("webp", "image.types", _takes("image/webp"), _type("image/webp"), needs_pictures=True),
        CaseRule("gif", "image.types", _takes("image/gif"), _type("image/gif"), needs_pictures=True),
        CaseRule("svg", "image.types", _takes("image/svg+xml"), _type("image/svg+xml"), needs_pictures=True),
        CaseRule("many", "image.max_count", _many, lambda _profile, _cell: {}, needs_pictures=True),
        CaseRule(
            "embedded",
            "blob.image_as_image",
            _embedded,
            lambda _profile, cell: {} if _seen(cell) else {"blob.image_as_image": True},
            needs_pictures=True,
        ),
        CaseRule(
            "pdf",
            "document.show",
            lambda profile: profile.document.show == "native",
            _media("document", "text"),
        ),
        CaseRule("sound", "audio.show", lambda profile: profile.audio.show == "native", _media("audio", "line")),
        CaseRule(
            "structured",
            "structured.host",
            _structured,
            lambda _profile, cell: {} if _seen(cell) else {"structured.host": "ignored", "structured.send": "never"},
        ),
        CaseRule(
            "structured_chart",
            "structured.host",
            _beside,
            _data_alone,
            needs_pictures=True,
        ),
        CaseRule(
            "error",
            "error.media",
            lambda profile: profile.image.show == "native" and profile.error.media == "keep",
            lambda _profile, cell: {"error.media": "keep" if _seen(cell) else "unflag"},
            needs_pictures=True,
        ),
        CaseRule(
            "long",
            "text.max_chars",
            lambda profile: profile.text.max_chars is None or profile.text.max_chars >= _LONG,
            lambda _profile, _cell: {},
        ),
    )
}
