"""The content of a recording that is beside its lines: media as the files that it is, long texts, each by its digest.

In a line, a reference takes the place of the text: `{"$file": "media/<sha256>.png", "as": "base64"}`.
"""

import base64
import binascii
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gateway.core.model.json_values import is_dict, is_list, is_object
from gateway.errors import ConfigError
from gateway.system.open_below import open_below
from gateway.upstream.recording.lines import MEDIA, json_text

FILE = "$file"
_AS = "as"
_ESCAPED = re.compile(r"\A\$+file")

LONG_TEXT = 64 * 1024
"""Characters of a text from which it is in a file of its own."""
LARGEST = 256 * 1024 * 1024
"""Bytes above which a file is not read, nor those of one value together."""
_SMALLEST = 16 * 1024
"""Bytes that a file counts at least, for the time that it takes."""

_NAME = re.compile(rf"{MEDIA}/([0-9a-f]{{64}})\.[a-z0-9]{{1,8}}")
_MEDIA_MEMBERS = frozenset({"data", "blob"})
"""The members of content blocks and resources that hold base64."""

_ENDINGS: Mapping[str, str] = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/svg+xml": "svg",
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/flac": "flac",
    "video/mp4": "mp4",
    "video/webm": "webm",
    "application/pdf": "pdf",
}

Keep = Callable[["ContentFile"], None]
"""Called with each file that a value refers to."""


class ContentFile(NamedTuple):
    """A file of a recording: its name below the recording's folder, and its bytes."""

    name: str
    content: bytes


def forget(file: ContentFile) -> None:
    """Keep nothing: for values that are only compared."""


def with_files(value: Any, keep: Keep, text: Callable[[str], str] = str) -> Any:
    """Return a JSON value with references in place of media and long texts. `text` is applied to every other text.

    The same value gives the same references.
    """
    if isinstance(value, str):
        return _of_text(text(value), keep)
    if is_object(value):
        media_type = value.get("mimeType")
        return {_escaped(text(key)): _of_member(key, item, media_type, keep, text) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [with_files(item, keep, text) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def whole_file(value: Any, keep: Keep) -> dict[str, Any]:
    """Return a reference in place of a whole JSON value, which is too long for a line."""
    return _referred(json_text(value).encode("utf-8"), "json", "json", keep)


def without_files(value: Any, folder: Path) -> Any:
    """Return a JSON value as it was before `with_files`. Reads files, so call it in a worker thread.

    Raises:
        ConfigError: a file is missing, was changed, or is not a file of a recording, or the files are too large
            together: each counts as often as it is referred to.
    """
    return _Restoring(folder).value(value)


def _of_member(key: str, item: Any, media_type: Any, keep: Keep, text: Callable[[str], str]) -> Any:
    if key in _MEDIA_MEMBERS and isinstance(item, str) and item and (content := _decoded(item)) is not None:
        ending = _ENDINGS.get(media_type, "bin") if isinstance(media_type, str) else "bin"
        return _referred(content, "base64", ending, keep)
    return with_files(item, keep, text)


def _of_text(text: str, keep: Keep) -> Any:
    if len(text) < LONG_TEXT:
        return text
    try:
        return _referred(text.encode("utf-8"), "text", "txt", keep)
    except UnicodeEncodeError:  # half of a surrogate pair, which only an escape can hold
        return _referred(json_text(text).encode("utf-8"), "json", "json", keep)


def _referred(content: bytes, form: str, ending: str, keep: Keep) -> dict[str, Any]:
    name = f"{MEDIA}/{hashlib.sha256(content).hexdigest()}.{ending}"
    keep(ContentFile(name, content))
    return {FILE: name, _AS: form}


def _decoded(text: str) -> bytes | None:
    """Return the bytes of canonical base64; None if they would not give the same text again."""
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return content if base64.b64encode(content).decode("ascii") == text else None


class _Restoring:
    """Puts content in place of references, up to `LARGEST` bytes: files can refer to others many times over."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._left = LARGEST

    def value(self, value: Any) -> Any:
        if is_dict(value):
            if FILE in value:
                return self._restored(value)
            return {_unescaped(key): self.value(item) for key, item in value.items()}
        if is_list(value):
            return [self.value(item) for item in value]
        return value

    def _restored(self, reference: Mapping[str, Any]) -> Any:
        content = read_content(self._folder, reference.get(FILE))
        self._left -= max(len(content), _SMALLEST)
        if self._left < 0:
            raise ConfigError(
                f"has an exchange whose files have more than {LARGEST:,} bytes together", where=str(self._folder)
            )
        match reference.get(_AS):
            case "base64":
                return base64.b64encode(content).decode("ascii")
            case "text":
                return content.decode("utf-8")
            case "json":
                return self.value(json.loads(content))
            case other:
                raise ConfigError(f'"as" is {other!r}', where=str(self._folder), remedy="base64, text or json")


def read_content(folder: Path, name: Any) -> bytes:
    """Return the content of a file of the recording in `folder`, once its digest is verified. Raises ConfigError."""
    found = _NAME.fullmatch(name) if isinstance(name, str) else None
    if found is None:
        raise ConfigError(
            f"{name!r} is not the name of a file of a recording", where=str(folder), remedy=f"{MEDIA}/<sha256>.<ending>"
        )
    place = folder / str(name)
    try:
        if place.is_symlink():
            raise ConfigError("is a link, which is not followed", where=str(place))
        opened = open_below((folder,), place)
        if opened is None:
            raise ConfigError("leads out of the recording", where=str(place))
        with os.fdopen(opened[0], "rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        reason = (error.strerror or "unknown cause").lower()
        raise ConfigError(
            f"cannot be read: {reason}", where=str(place), remedy="copy a recording with its folder media"
        ) from None
    if len(content) > LARGEST:
        raise ConfigError(f"has more than {LARGEST:,} bytes", where=str(place))
    if hashlib.sha256(content).hexdigest() != found[1]:
        raise ConfigError("was changed: its content has another digest than its name says", where=str(place))
    return content


def _escaped(key: str) -> str:
    return f"${key}" if _ESCAPED.fullmatch(key) else key


def _unescaped(key: str) -> str:
    return key[1:] if _ESCAPED.fullmatch(key) else key
