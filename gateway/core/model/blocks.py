"""The blocks of the envelope: what a tool returned, exactly as it arrived.

Every field that an upstream sent is kept, whether we know it or not, and `wire()` returns it unchanged. What we found
out about the content ourselves (`found`) is kept apart and never sent.

Block kinds by protocol revision: https://modelcontextprotocol.io/specification (server/tools, "Tool Result").
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gateway.core.model.json_values import is_dict, is_list
from gateway.core.model.media_types import PixelSize


class Found(BaseModel):
    """The real nature of a block's content, as far as its first bytes show.

    `data` is the content as well-formed base64 (the original string unless it had to be mended); `byte_size` its
    decoded size in bytes; `pixels` the size of an image. `media_type` is sniffed, or else as declared.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    data: str
    byte_size: int
    media_type: str | None
    pixels: PixelSize | None = None


class _Block(BaseModel):
    """Base class of the blocks: frozen, keeping unknown fields and leaving absent ones absent."""

    model_config = ConfigDict(frozen=True, extra="allow", serialize_by_alias=True)

    annotations: Any = None
    meta: Any = Field(default=None, alias="_meta")

    def wire(self) -> dict[str, Any]:
        """The block as it arrived."""
        return self.model_dump(by_alias=True, exclude_unset=True)

    @property
    def audience(self) -> tuple[str, ...]:
        """The audience that the upstream declared: `user`, `assistant`, both, or empty if it declared none."""
        annotations: Any = self.annotations
        if not is_dict(annotations):
            return ()
        audience = annotations.get("audience")
        if not is_list(audience):
            return ()
        return tuple(role for role in audience if isinstance(role, str))


MediaType = Annotated[str, Field(max_length=1_000)]
"""A declared media type: two names of at most 127 characters (RFC 6838, 4.2), and parameters. No text of any length."""


class TextBlock(_Block):
    """Text for the model."""

    type: Literal["text"]
    text: str


class ImageBlock(_Block):
    """An image. `found` is None if its base64 is broken."""

    type: Literal["image"]
    data: str
    mime_type: MediaType | None = Field(default=None, alias="mimeType")
    found: Found | None = Field(default=None, alias="gateway/found", exclude=True)


class AudioBlock(_Block):
    """Sound. `found` is None if its base64 is broken."""

    type: Literal["audio"]
    data: str
    mime_type: MediaType | None = Field(default=None, alias="mimeType")
    found: Found | None = Field(default=None, alias="gateway/found", exclude=True)


class ResourceContents(BaseModel):
    """The contents of a resource: `text` or `blob` (base64), with its URI."""

    model_config = ConfigDict(frozen=True, extra="allow", serialize_by_alias=True)

    uri: str
    mime_type: MediaType | None = Field(default=None, alias="mimeType")
    text: str | None = None
    blob: str | None = None
    meta: Any = Field(default=None, alias="_meta")


class ResourceBlock(_Block):
    """A resource embedded in the result. `found` describes its blob; it is None for text and for broken base64."""

    type: Literal["resource"]
    resource: ResourceContents
    found: Found | None = Field(default=None, alias="gateway/found", exclude=True)


class LinkBlock(_Block):
    """A link to a resource that can be read from the upstream."""

    type: Literal["resource_link"]
    uri: str
    name: str | None = None
    title: str | None = None
    description: str | None = None
    mime_type: MediaType | None = Field(default=None, alias="mimeType")
    size: int | None = None
    icons: Any = None


class UnknownBlock(BaseModel):
    """A block of an unknown kind, or one too malformed to be read, kept whole."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["gateway/unknown"] = "gateway/unknown"
    value: Any

    def wire(self) -> Any:
        """The block as it arrived."""
        return self.value

    @property
    def audience(self) -> tuple[str, ...]:
        """Always empty: the audience of an unknown block is not known."""
        return ()


KnownBlock = TextBlock | ImageBlock | AudioBlock | ResourceBlock | LinkBlock
Block = Annotated[KnownBlock | UnknownBlock, Field(discriminator="type")]

BLOCK_TYPES: Mapping[str, type[KnownBlock]] = {
    "text": TextBlock,
    "image": ImageBlock,
    "audio": AudioBlock,
    "resource": ResourceBlock,
    "resource_link": LinkBlock,
}
