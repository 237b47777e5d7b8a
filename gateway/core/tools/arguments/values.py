"""Finding the values in the arguments of a call that stand for content: handles, data URIs and URLs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

from gateway.core.model.json_values import is_list, is_object
from gateway.core.tools.arguments.parameters import Parameter, Path, Place

MOST_VALUES = 1_000
"""Maximum number of values of one call that are taken for content; more are an error of the caller."""

_NAMES = "img|aud|vid|doc|mod|cad|txt|bin"
_HANDLE = re.compile(rf"(?:{_NAMES})_[0-9a-z]{{12}}", re.IGNORECASE)
_ALMOST = re.compile(rf"(?:{_NAMES})_[0-9a-z]{{4,30}}", re.IGNORECASE)
"""Matches a text that was meant as a handle, where it cannot be anything else."""
_QUOTES = " \t\r\n\"'`<>"
_LONGEST_HANDLE = 40
"""Characters beyond which a text is not a bare handle, with `content://` and quotes."""
_LONGEST_LINE = 1_000
"""Characters beyond which a text cannot be one of our lines that name a handle."""


@dataclass(frozen=True)
class Handle:
    """A handle as the model wrote it."""

    text: str


@dataclass(frozen=True)
class DataUri:
    """A data URI. `fits`: it has the form that the tool requires, so that only its kind has to be checked."""

    text: str
    fits: bool = False


@dataclass(frozen=True)
class Url:
    """An http(s) URL that is to be fetched."""

    text: str


Reference: TypeAlias = Handle | DataUri | Url


@dataclass(frozen=True)
class WantedContent:
    """A value that stands for content: its place, the reference in it, and the parameter that it is for."""

    place: Place
    reference: Reference
    parameter: Parameter


def wanted_contents(
    arguments: Mapping[str, Any], parameters: Sequence[Parameter], *, fetched: bool
) -> tuple[WantedContent, ...]:
    """Find the values that stand for content, in the order of the parameters, each place once.

    `fetched`: URLs are fetched here; if not, they are left to the tool, like all other values.
    """
    found: dict[Place, WantedContent] = {}
    for parameter in parameters:
        for place, value in _values(arguments, parameter.path, ()):
            reference = _reference(value, parameter, fetched=fetched)
            if reference is not None:
                found.setdefault(place, WantedContent(place, reference, parameter))
    # A value inside another one that is replaced as a whole is replaced with it.
    return tuple(each for place, each in found.items() if not any(place[:end] in found for end in range(1, len(place))))


def unmarked_handles(arguments: object, parameters: Sequence[Parameter]) -> tuple[tuple[Place, str], ...]:
    """Find the texts that are spelled as handles where no parameter takes content, each with its place.

    They are passed on as they are. The search ends after `MOST_VALUES` values.
    """
    marked = [place for parameter in parameters for place, _ in _values(arguments, parameter.path, ())]
    found: list[tuple[Place, str]] = []
    left: list[tuple[Place, Any]] = [((), arguments)]
    seen = 0
    while left and seen < MOST_VALUES:
        place, value = left.pop()
        seen += 1
        if place in marked:
            continue
        if is_object(value):
            left += [((*place, key), member) for key, member in islice(value.items(), MOST_VALUES)][::-1]
        elif is_list(value):
            left += [((*place, index), item) for index, item in enumerate(value[:MOST_VALUES])][::-1]
        elif isinstance(value, str) and len(value) <= _LONGEST_HANDLE and (handle := _bare(value)):
            found.append((place, handle))
    return tuple(found)


def _bare(text: str) -> str | None:
    """Return the handle that a text is; None for any other text."""
    plain = text.strip(_QUOTES).lower().removeprefix("content://")
    return plain if _HANDLE.fullmatch(plain) else None


def _values(value: Any, path: Path, place: Place) -> Iterator[tuple[Place, Any]]:
    """Yield the values at a path: one, or one per item of the lists on the path."""
    if not path:
        yield place, value
        return
    step, rest = path[0], path[1:]
    if step is None:
        if is_list(value):
            for position, item in enumerate(value):
                yield from _values(item, rest, (*place, position))
    elif is_object(value) and step in value:
        yield from _values(value[step], rest, (*place, step))


def _reference(value: Any, parameter: Parameter, *, fetched: bool) -> Reference | None:
    if is_object(value):
        return _named(value)
    if not isinstance(value, str):
        return None
    start = value[:16].lstrip().lower()
    if start.startswith("data:"):
        return DataUri(value.strip(), fits=parameter.form in ("data-uri", "named-data-uri"))
    if start.startswith(("http://", "https://")):
        left = parameter.takes_urls or parameter.form == "url" or not fetched
        return None if left else Url(value.strip())
    return _handle(value, parameter)


def _named(value: Mapping[str, Any]) -> Handle | None:
    """Return the handle of a typed object; None if the object contains its content."""
    handle = value.get("handle_id")
    return Handle(handle) if isinstance(handle, str) and not value.get("source") else None


def _handle(value: str, parameter: Parameter) -> Handle | None:
    if len(value) > _LONGEST_LINE:
        return None
    text = value.strip(_QUOTES)
    if text.lower().startswith("content://") or _HANDLE.fullmatch(text):
        return Handle(text)
    if parameter.form in ("path", "url"):  # any other text may be a path or URL
        return None
    if _ALMOST.fullmatch(text):
        return Handle(text)
    within = set(_HANDLE.findall(text)) if text.startswith("[") and text.endswith("]") else set[str]()
    return Handle(within.pop()) if len(within) == 1 else None
