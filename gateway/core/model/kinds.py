"""Kinds of content, by media type, or by file name if the type says too little.

Sources: https://www.iana.org/assignments/media-types/media-types.xhtml, and the unregistered types that are in use.
"""

from typing import Literal

from gateway.core.model.media_types import ZIPPED, family, normalise

Kind = Literal["image", "audio", "video", "document", "3d", "cad", "other"]

_TYPES: dict[str, Kind] = {
    **dict.fromkeys(
        (
            "image/vnd.dwg",
            "image/vnd.dxf",
            "image/x-dwg",
            "image/x-dxf",
            "application/acad",
            "application/dwg",
            "application/dxf",
            "application/x-acad",
            "application/x-dwg",
            "application/x-dxf",
            "application/step",
            "application/x-step",
            "application/iges",
            "application/x-iges",
            "model/iges",
            "model/step",
            "model/step+xml",
            "model/step+zip",
            "model/step-xml+zip",
        ),
        "cad",
    ),
    **dict.fromkeys(("application/sla", "application/vnd.ms-pki.stl", "application/x-stl", "application/x-fbx"), "3d"),
    **dict.fromkeys(
        (
            "application/json",
            "application/ndjson",
            "application/xml",
            "application/yaml",
            "application/toml",
            "application/rtf",
            "application/msword",
            "application/vnd.ms-excel",
            "application/vnd.ms-powerpoint",
        ),
        "document",
    ),
}

_NAMES: dict[str, Kind] = {
    **dict.fromkeys(("dwg", "dxf", "iges", "igs", "step", "stp"), "cad"),
    **dict.fromkeys(("3ds", "3mf", "dae", "fbx", "glb", "gltf", "obj", "ply", "stl", "usdz"), "3d"),
    **dict.fromkeys(("avif", "bmp", "gif", "heic", "jpeg", "jpg", "png", "svg", "tif", "tiff", "webp"), "image"),
    **dict.fromkeys(("aac", "flac", "m4a", "mp3", "oga", "ogg", "opus", "wav"), "audio"),
    **dict.fromkeys(("avi", "m4v", "mkv", "mov", "mp4", "mpeg", "mpg", "webm"), "video"),
    **dict.fromkeys(("csv", "doc", "docx", "epub", "htm", "html", "json", "md", "odp", "ods", "odt"), "document"),
    **dict.fromkeys(("pdf", "ppt", "pptx", "rtf", "txt", "xls", "xlsx", "xml", "yaml", "yml"), "document"),
}

_VAGUE = frozenset({"text/plain", "application/json", "application/xml", "application/zip"})
"""Types that many formats are sent as, so that a more specific file name is believed."""


def kind_of(media_type: str | None, name: str | None = None) -> Kind:
    """Return the kind of content of this type; if the type says little or nothing, by the extension of its name."""
    plain = normalise(media_type)
    by_type = _by_type(plain)
    if by_type != "other" and plain not in _VAGUE:
        return by_type
    _, dot, ending = (name or "").rpartition(".")
    return _NAMES.get(ending.lower(), by_type) if dot else by_type


def _by_type(media_type: str | None) -> Kind:
    if media_type is None:
        return "other"
    if known := _TYPES.get(media_type):
        return known
    if media_type.startswith("model/"):
        return "3d"
    match family(media_type):
        case "image":
            return "image"
        case "audio":
            return "audio"
        case "video":
            return "video"
        case "text" | "document":
            return "document"
        case _:
            textual = media_type.startswith("application/") and media_type.endswith(("+json", "+xml", "+yaml"))
            return "document" if textual or media_type.startswith(ZIPPED) else "other"
