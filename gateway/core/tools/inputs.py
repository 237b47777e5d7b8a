"""For authors of tools: schemas of arguments that take content, and a note that lists the available content.

A model cannot write bytes. It passes a handle such as `img_7h3k2m9q4w8x`, and the caller of the tool (this gateway, or
any program that knows the tag `x-blazen-content-ref`) replaces it by the content of the handle:

    {"kind": "image", "handle_id": "img_7h3k2m9q4w8x", "mime_type": "image/png", "byte_size": 34012,
     "display_name": "chart.png", "source": {"type": "base64", "data": "iVBORw0K..."}}

Standard library only, so that it can be used by a server that needs nothing else of the gateway.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from gateway.core.wording import content_directory, content_line

TAG = "x-blazen-content-ref"


class Describable(Protocol):
    """Content as `directory_note` lists it: `gateway.content.store.Stored` is one."""

    @property
    def handle(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def media_type(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def name(self) -> str | None: ...


def content_property(kind: str, description: str = "") -> dict[str, Any]:
    """Return the schema of one argument that takes content of a kind, for the `properties` of a schema of your own."""
    said = {"description": description} if description else {}
    return {"type": "string", **said, TAG: {"kind": kind}}


def image_input(name: str, description: str = "", others: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the schema of a tool with an image as its argument `name`, and `others` (properties by name) beside it."""
    return _input("image", name, description, others)


def audio_input(name: str, description: str = "", others: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The same as `image_input`, for sound."""
    return _input("audio", name, description, others)


def video_input(name: str, description: str = "", others: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The same as `image_input`, for a video."""
    return _input("video", name, description, others)


def file_input(name: str, description: str = "", others: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The same as `image_input`, for a document: PDF, office formats, text."""
    return _input("document", name, description, others)


def three_d_input(name: str, description: str = "", others: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The same as `image_input`, for a 3D model: glTF, STL, OBJ and others."""
    return _input("three_d_model", name, description, others)


def cad_input(name: str, description: str = "", others: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The same as `image_input`, for a CAD file: STEP, IGES, DXF, DWG."""
    return _input("cad", name, description, others)


def directory_note(handles: Iterable[Describable]) -> str:
    """Return a short text for a model that lists the content, newest first, and says that tools take it by its handle.

    `handles` are the oldest first, as `ContentStore.list` returns them.
    """
    newest_first = reversed(tuple(handles))
    return content_directory(
        [content_line(each.handle, each.media_type, each.size, each.name) for each in newest_first]
    )


def _input(kind: str, name: str, description: str, others: Mapping[str, Any] | None) -> dict[str, Any]:
    properties = {**(others or {}), name: content_property(kind, description)}
    return {"type": "object", "properties": properties, "required": [name]}
