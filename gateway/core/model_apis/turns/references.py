"""Links that an API reads itself: files that its provider keeps, and addresses if the caller asks for that.

A provider's file is a `resource_link` whose URI is `<provider>-file:<id>`: `openai-file:file-abc`,
`anthropic-file:file_abc`, `gemini-file:files/abc`, `mistral-file:<uuid>`; fal.ai's id is an address, as in
`fal-file:https://...`.
"""

import re

from gateway.core.model import media_types
from gateway.core.model.blocks import LinkBlock
from gateway.core.model.turn import Media, MediaKind, Ref
from gateway.core.profiles.model_profile import ModelProfile, ModelRefs

FILE_SCHEMES = ("openai-file", "anthropic-file", "gemini-file", "mistral-file", "fal-file")
"""The schemes of URIs that name a file by its provider's id."""

_GEMINI_FILES = "https://generativelanguage.googleapis.com/v1beta/"
"""Prefix of the name of a file that Google keeps: `files/abc`."""

_FILE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}(?:/[A-Za-z0-9][A-Za-z0-9_.-]{0,199})?")
_ADDRESS = re.compile(r"[a-z0-9]+://[^\s\x00-\x1f\x7f\"<>\\^`{|}]{1,2000}", re.IGNORECASE)


def is_file(block: LinkBlock) -> bool:
    """Whether a link names a provider's file."""
    return _scheme(block) in FILE_SCHEMES


def reference(block: LinkBlock, profile: ModelProfile, *, native: bool) -> tuple[Media, ModelRefs] | None:
    """Return the media that the API reads itself, without a label yet, and its rules; None if it cannot."""
    scheme = _scheme(block)
    media_type = media_types.normalise(block.mime_type)
    if scheme in profile.file.schemes:
        rules, ref = profile.file, _file(block.uri)
    elif native and scheme in profile.link.schemes:
        rules, ref = profile.link, _address(block.uri)
    else:
        return None
    kind = _kind(media_type, is_file=rules is profile.file)
    if rules.place == "none" or ref is None or kind not in rules.kinds or (kind == "image" and not profile.vision):
        return None
    taken = {"image": profile.image, "audio": profile.audio, "document": profile.document, "video": profile.video}
    types = taken[kind].types
    if media_type is not None and types and media_type not in types:
        return None
    declared = media_type or (types[0] if types else "application/octet-stream")
    return Media(kind, declared, "", "", block.title or block.name, ref), rules


def gemini_uri(media: Media) -> str:
    """Return the URI by which Gemini's APIs find content with a reference: Google's own files have one too."""
    return f"{_GEMINI_FILES}{media.file_id}" if media.file_id else media.url


def _scheme(block: LinkBlock) -> str:
    return block.uri[:40].split(":", 1)[0].lower()


def _file(uri: str) -> Ref | None:
    scheme, _, name = uri.partition(":")
    if scheme.lower() == "fal-file":
        return _address(name)
    return Ref("file", name) if _FILE_ID.fullmatch(name) else None


def _address(uri: str) -> Ref | None:
    return Ref("url", uri) if _ADDRESS.fullmatch(uri) else None


def _kind(media_type: str | None, *, is_file: bool) -> MediaKind | None:
    if media_type is None:
        # A file without a type is most often a document; an address could be anything, including a web page.
        return "document" if is_file else None
    family = media_types.family(media_type)
    return family if family in ("image", "audio", "video") else "document"  # pyright: ignore[reportReturnType]
