"""A form for the values of a profile, made from the model of profiles."""

from typing import Any

from gateway.core.profiles.host_profiles import PATHS, value_at
from gateway.core.profiles.profile import Profile
from gateway.core.profiles.profile_texts import value_as_text, value_kind
from gateway.core.profiles.profile_words import words_at

FIRST = (
    "image.show",
    "image.types",
    "image.max_edge",
    "image.max_bytes",
    "image.max_count",
    "shown",
    "text.max_chars",
    "limits.result_chars",
    "structured.send",
    "document.show",
    "audio.show",
    "link.show",
    "error.media",
    "handles",
    "rescue",
    "order",
)
"""The values that people change most."""


def profile_fields(profile: Profile, parent: Profile | None) -> list[dict[str, Any]]:
    """Return a field for each value, those that people change most first.

    Each has its `path`, `kind` (choice, number, list, json, text), `value` as text, the `choices` of a choice, the
    parent's value in words as `parent_value`, and whether it `is_first`.
    """
    rest = [path for path in PATHS if path not in FIRST]
    return [_field(path, profile, parent) for path in (*FIRST, *rest)]


def _field(path: str, profile: Profile, parent: Profile | None) -> dict[str, Any]:
    kind, choices = value_kind(path)
    return {
        "path": path,
        "kind": kind,
        "choices": list(choices),
        "value": value_as_text(value_at(profile, path)),
        "parent_value": None if parent is None else words_at(parent, path),
        "is_first": path in FIRST,
    }
